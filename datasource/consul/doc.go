// Package consulsource reads rule documents from Consul's key-value store and follows every
// change of them. Each key below a prefix is one document.
//
//	source, err := consulsource.New("127.0.0.1:8500", consulsource.Prefix("shop"), consulsource.Options{
//		Token: func() (string, error) { return os.Getenv("CONSUL_HTTP_TOKEN"), nil },
//	})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// Documents are written with the command of Consul, with its API or in its user interface:
//
//	consul kv put penstock/shop/orders.yaml @orders.yaml
//
// Keys that end in a slash are folders and no documents. Values in Consul have at most
// 512 KiB.
//
// # Guarantees
//
// A blocking query on the prefix answers with all documents at one index as soon as one of
// them changes. The source compares them with those before and applies what differs, as
// one change. Several keys that are written in one transaction arrive as one change.
// Versions that follow each other within 50 ms may be skipped, but none is applied out of
// order or in part.
//
// Reads are consistent: the leader answers, after the other servers have confirmed that it
// still is the leader. [Options.MaxStale] gives that up for reads that any server can
// answer; documents that are older than those read before are not applied then either,
// unless a consistent read returns them too.
//
// After a failure the source reads without waiting, because a cluster that was replaced
// may have reached the same index with other documents. Without a failure, all documents
// are read after each [Options.WatchTimeout], whether something has changed or not. An
// index that goes backwards means that Consul was restored from a backup or replaced: the
// source logs that and applies what it reads.
//
// Consul hides the keys that a token may not read, as if they had been deleted. The source
// notices that and keeps its rules: for tokens, Consul 1.12 and later say so. Without a
// token, where access is denied by default, the source only notices when it can read
// nothing at all; use a token there. An answer that is not from Consul, such as the 404 of
// a proxy, never removes rules.
//
// # Requirements
//
// The token needs this policy, and "list" instead of "read" where the servers have
// enable_key_list_policy:
//
//	key_prefix "penstock/shop/" { policy = "read" }
//
// A server that does not answer is noticed within [Options.WatchTimeout], a sixteenth of
// it, and [Options.RequestTimeout]: 37 s by default. The source follows no redirects.
//
// # The client
//
// The source speaks the documented HTTP API with net/http. The client
// github.com/hashicorp/consul/api would bring 85 modules into the module graph of a
// service, for two requests.
//
// The tests run against a stand-in that follows the documentation of the API, and against a
// real server if there is a program consul on the PATH; they passed with that of 1.21.0.
package consulsource
