// Package lastgood keeps a copy of a source's rules in a file, so that a service
// that is started while the source is away still has its rules.
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
// be read, when it gives up, or when it has said nothing for [Options.Patience],
// the engine goes by the copy: it then counts as ready, its status tells when the
// copy was true (core.SourceStatus.CopiedAt), and the source stays disconnected.
// What the source delivers later replaces the copy as a whole.
//
// When the source delivers in time, the copy is applied right before, as that which
// the engine holds the delivery against: a document that is broken now keeps its
// last good version, and a change that takes out too many rules is held back
// (core.Config.MaxRemoval), though the process was started anew in between. The
// engine is not ready before what the source delivers is in force, and a disk that
// hangs holds that up for no longer than the patience.
//
// An engine that has rules of the source already, because it followed it before,
// needs no copy and gets none.
//
// # What the copy holds
//
// The documents that are in force, byte by byte: of one that was rejected the
// last good version, of one that was never accepted none. What the program
// refuses of a copy, because it is another version than the one that saved it,
// is reported by the engine like any other document. While the engine runs on a
// copy nothing is saved: nothing new is known.
//
// The copy is saved when that has changed, once in [Options.Interval] at the
// most, and when a run ends. While the source can be read it is also saved once
// an hour, and at the end of a run, so that the time in it is at most an hour too
// early.
// A process that is killed may leave a copy that lacks the changes of the last
// interval. Rules of other sources and of the code are in no copy.
//
// A copy that somebody removes while the source is followed is noticed within ten
// seconds and written again, also while the engine runs on it.
//
// A save writes another file in the same directory, forces it to the disk,
// renames it and forces the directory to the disk: whenever the process or the
// machine stops, the file is the old copy or the new one. What a process that was
// killed left of that other file is removed by the next one. A save that fails
// is logged when it begins to fail and whenever the reason changes; it is tried
// again and never touches the rules.
//
// # The file
//
// The first line tells the format and the SHA-256 of all that follows, which is
// JSON: the application, the source with its revision, when this was the truth,
// and the documents. Bytes that are not UTF-8 are in base64. To look at it:
//
//	tail -n +2 rules.copy | jq -r '.documents[].data'
//
// It has at most [MaxSize] bytes; while more is in force the copy stays what it
// was and that is reported. The documents are also held in memory once.
//
// # What is not believed
//
// A copy that was cut off or changed, that a later version wrote, that belongs to
// another application or source, or that is too large is reported and ignored as
// a whole. The service then starts without it, and the next save replaces it.
//
// The checksum guards against accidents, not against people. So a copy is also
// ignored when it is no regular file, when its group or others may write to it,
// and when neither root nor the user of the process owns it (the last two not
// on Windows). That others may read it is no reason: the next save makes it
// readable to its owner alone.
//
// One path is for one source in one process. Two that share a path replace each
// other's copies.
package lastgood
