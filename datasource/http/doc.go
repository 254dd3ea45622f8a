// Package httpsource reads rule documents from an HTTP server and follows their changes.
// The package needs the standard library only.
//
//	source, err := httpsource.New("https://config.example.com/shop/orders.yaml", httpsource.Options{})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// [New] follows one document. An engine can follow any number of sources. [NewIndex]
// follows the documents that an index lists, which come and go with it:
//
//	{"documents": [
//		{"name": "orders.yaml"},
//		{"name": "shop/pay.yaml", "sha256": "9f86d0…"}
//	]}
//
// A name is a path relative to the URL of the index. With the SHA-256 of its bytes, in
// hexadecimal digits, a document is read only when that changes, so an idle poll of any
// number of documents is one request; and a version that does not have it is not
// delivered. Write the documents before the index.
//
// # Polls
//
// The source asks about every 10 seconds ([Options.Interval]), with If-None-Match and
// If-Modified-Since once a document has not changed for two seconds: until then, tags and
// times that a server derives from those of files may hide a change. Bodies are compared by
// their SHA-256, so a server needs neither tags nor times. About once a minute
// ([Options.CompareInterval]) the source asks without a condition, since files may be
// replaced by others with the same times and sizes, and caches may say for ever that nothing
// has changed. A document that has changed under the same tag and time is read at every poll
// from then on. Requests ask caches to revalidate; one that ignores that delays changes, and
// several of them may show an older version after a newer one.
//
// # Failures
//
// What cannot be read changes nothing: the source is reported as disconnected, the engine
// keeps all rules, and the source tries again with growing pauses. That applies to a
// server that cannot be reached, to timeouts, and to every status but 200, 304 and 410. A 404
// is one of them, because a proxy without its server, or a mistake in a route, looks the
// same. To take out rules on purpose, serve a document without rules ("flow: []"), take
// the document out of the index, or answer 410 Gone for the document of [New]. An index
// that is emptied by mistake takes out everything: core.Config.MaxRemoval holds such
// changes back until they are confirmed.
//
// A document of an index that cannot be read is reported as faulty after the second poll in a
// row, and keeps its last good version. All others are delivered. Nothing is delivered
// until each document of the index was read, or has failed twice.
//
// A body is delivered only if it is complete: it has the length that the server has
// announced, or ends with the last chunk. One that is longer than [rules.MaxDocumentSize],
// also after decompression, and an HTML page is a faulty document. An index that is not
// JSON, or has no list of documents, counts as one that cannot be read.
//
// # Credentials
//
// [Options.Token], [Options.Header] and a user in the URL are sent to the scheme, host
// and port of the URL only, wherever it redirects to. Redirects from https to http are
// not followed. Neither credentials nor queries of URLs are in names, errors and logs.
package httpsource
