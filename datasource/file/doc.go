// Package file reads rule documents from a directory, or from one file, and
// follows every change of them.
//
//	source, err := file.New("/etc/shop/rules", file.Options{})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// # Documents
//
// Of a directory, each file whose name ends in .yaml, .yml or .json and does not
// begin with a dot is a document, named like the file. Subdirectories are not
// searched. Symbolic links are followed. A path that is a file is one
// document, whatever its name.
//
// # Changes
//
// The source looks at the path at an interval. It does not ask the operating
// system to be notified, because that takes a third-party library, has limits
// of its own and does not work for network file systems. A look costs a stat
// per file; a file is read again only when its identity, its size, the time of
// its modification or that of its last change of any kind (not on Windows) is
// another, and for two seconds after that, for as long as file systems with
// coarse times may hide another change. What is read and equals what was
// delivered is no change.
//
// Of more than 250 documents that are at rest, a look is at the directory and at
// a sixteenth of them, and at all again as soon as anything differs. What is
// created, removed or replaced is seen at the next look all the same; a file that
// is written in place may be seen fifteen looks later.
//
// All that changed between two looks is one change. It is delivered once two
// successive looks found the same, so that a file is not read while it is being
// written, several files that are replaced together take effect together, and a
// file that is deleted and written anew is never missing. If the path does not
// come to rest for eight looks, what did is delivered without the rest, and a
// file that differed in every one of them is reported as faulty. The first look
// is believed at once unless a file was modified within the last interval.
//
// To replace a document safely, write it under another name and rename it. A
// writer that pauses for longer than an interval in the middle of a document is
// taken for one that has finished. Volumes of Kubernetes ConfigMaps are swapped
// whole and so are read whole.
//
// # Failures
//
// A document that cannot be read or is too long is faulty: the engine reports
// it and keeps the last good version. So is a directory, a pipe, a socket or a
// device with the name of a document; it is not waited for. An empty file is delivered like any
// other; the engine refuses it.
//
// A path that does not exist or cannot be read is no change: the engine is told
// that the source is disconnected and keeps all rules. So it is when a single
// file is deleted, and when a directory has given way to another one that is
// empty, as happens when a file system is unmounted. A document is gone only
// when its directory can be read and does not hold it, or when the path has come to
// be a single file.
package file
