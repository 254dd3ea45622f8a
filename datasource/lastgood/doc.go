// Package lastgood wraps a source so that a service can start while the source is
// down: it keeps a copy of the rules in force in a file.
//
//	source, err := etcd.Open(config, etcd.Prefix("shop"), etcd.Options{Instance: hostname})
//	if err != nil {
//		return err
//	}
//	kept, err := lastgood.Keep(source, lastgood.Options{Path: "/var/lib/shop/rules.copy", App: "shop"})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, kept)
//
// # When the copy is used
//
// A copy is applied at most once in a run. When the source reports that it cannot
// be read, when it returns, or when it has reported nothing for [Options.SourceTimeout],
// the engine applies the copy. The engine then counts as ready, its status shows the
// time of the copy (core.SourceStatus.CopiedAt), and the source stays disconnected.
// What the source delivers later replaces the copy completely.
//
// When the source delivers in time, the copy is applied just before, so that the
// engine compares the delivery with it as if the process had not restarted: a
// document that is broken now keeps its last good version, and a change that removes
// too many rules is held back (core.Config.MaxRemoval). The engine is not ready
// until the delivery is in force. A disk that hangs delays that by at most
// [Options.SourceTimeout].
//
// An engine that has rules of the source already, because it followed it before,
// gets no copy.
//
// # What the copy holds
//
// The documents that are in force, byte for byte: the last good version of a
// document that was rejected, and nothing of one that was never accepted. If the
// program rejects a document of the copy, because another version of it saved the
// copy, the engine reports that as for any other document. While the engine runs on
// a copy, nothing is saved.
//
// The copy is saved when the documents in force have changed, at most once in
// [Options.Interval], and when a run ends. While the source can be read it is also
// saved once an hour, so that the time in it is at most an hour too early. A process
// that is killed may leave a copy without the changes of the last interval. The copy
// does not contain rules of other sources or of the code.
//
// If somebody removes the copy while the source is followed, it is written again
// within ten seconds, also while the engine runs on it.
//
// A save writes a temporary file in the same directory, syncs it, renames it and
// syncs the directory: whenever the process or the machine stops, the file is the
// old copy or the new one. The next process removes a temporary file that a killed
// one has left. A failing save is logged at first and whenever the reason changes;
// it is retried and never affects the rules.
//
// # The file
//
// The first line contains the format and the SHA-256 of the rest. The rest is JSON:
// the application, the source with its revision, the time at which the source had
// these documents, and the documents. Bytes that are not UTF-8 are in base64. To
// print the documents:
//
//	tail -n +2 rules.copy | jq -r '.documents[].data'
//
// The file has at most 64 MiB. If the documents in force need more, the
// copy stays as it is and the error is logged. The documents are also kept in memory
// once.
//
// # Copies that are ignored
//
// A copy that was truncated or changed, that a later version wrote, that belongs to
// another application or source, or that is too large is reported and ignored
// completely. The service then starts without it, and the next save replaces it.
//
// The checksum detects accidents, not tampering. A copy is therefore also ignored if
// it is not a regular file, if its group or others may write to it, or if neither
// root nor the user of the process owns it (the last two not on Windows). A copy
// that others may read is accepted; the next save makes it readable to its owner
// only.
//
// Use one path for one source in one process. Two sources with the same path
// overwrite each other's copies.
package lastgood
