// Package nacossource reads rule documents from Nacos and follows every change of them. All
// configurations of a group are documents: their data IDs are the names.
//
//	source, err := nacossource.New("nacos:8848", nacossource.Group("shop"), nacossource.Options{
//		Namespace:   "0d3f6f0e-5c57-4c8e-9d2a-8f6f4a7a9c11",
//		Credentials: func() (string, string, error) { return "shop", os.Getenv("NACOS_PASSWORD"), nil },
//	})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// Documents are written in the console of Nacos, or with its API:
//
//	curl -X POST http://nacos:8848/nacos/v1/cs/configs -d tenant=… -d group=penstock-shop \
//		-d dataId=orders.yaml --data-urlencode content@orders.yaml
//
// Names have letters, digits and . : _ -, and documents that are empty are refused by Nacos.
// Keep the group for rules: every configuration in it is read as a rule document. Those that
// a plugin of Nacos encrypts (cipher-…) are reported as faulty.
//
// # Guarantees
//
// The source lists the group, and then asks a listener of Nacos which of the documents
// have another MD5 sum than those it has; it lists the group again when the listener
// answers, and each [Options.PollInterval] anyway. So a change or a removal of a document
// arrives at once, and a new document within that interval. Of more than 3,000 documents
// in a group only those that are first by name are listened to.
//
// Nacos has no revisions and no read of several documents at one time. What the source
// applies as one change may have been written at different times, if it was written while
// the source read; the rest arrives with the next read. A document that is no longer
// listed is removed only if Nacos also answers a read of it with "config data not exist".
// Any other answer changes nothing.
//
// The servers of a Nacos cluster are not consistent with each other: Nacos prefers to
// answer. A server that is cut off from its database answers with the rules that it knows,
// and cannot be told from one that is current. With the embedded database, an address that
// stands for several servers may for a moment return documents that are older than those
// read before.
//
// The source writes nothing to the disk and reads no snapshot from there, as the clients of
// Nacos do: rules from a copy would be taken for those of the server. Package
// datasource/lastgood keeps a copy of any source, and status, logs and metrics say when it is
// in force.
//
// # Requirements
//
// Servers of Nacos 2 are supported, by their open API of version 1, which Nacos 1.4 has too.
// Nacos 3 has it only while its compatibility with that API is switched on. The user needs
// the permission to read the namespace. Tokens are renewed before they expire, and when a
// server refuses them. Nacos takes tokens in the query of requests: the source does not show
// them, but access logs of servers and proxies may. Use https where you can.
//
// A server that does not answer is noticed within [Options.PollInterval], twice
// [Options.RequestTimeout], and half a second: 21 s by default. The source follows no redirects.
//
// # The client
//
// The source speaks the documented open API with net/http. The client
// github.com/nacos-group/nacos-sdk-go/v2 would bring 258 modules into the module graph of a
// service; it also writes caches and logs to the disk, and falls back to the cache when it
// cannot read.
//
// The tests run against a stand-in that follows the documentation of the open API. They
// have not run against a real server.
package nacossource
