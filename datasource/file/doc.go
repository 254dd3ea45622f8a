// Package file reads rule documents from a directory, or from one file, and
// follows every change of them.
//
//	source, err := file.New("/etc/shop/rules", file.Options{})
//	if err != nil {
//		return err
//	}
//	err = engine.Follow(ctx, source)
//
// [WatchLists] does the same for the lists that rules name: text files, which may be
// large, in a directory of their own.
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
// The source polls the path at an interval. It does not use notifications of the
// operating system, because they need a third-party library, have limits of their
// own and do not work on network file systems. A poll costs one stat per file. A
// file is read again only if its identity, size, modification time or inode change
// time (not on Windows) differs, for two seconds after that, because file systems
// with coarse times may hide another change, and once a minute
// ([Options.CompareInterval]), because some do not tell of every change. Reading the
// same bytes as were delivered is not a change.
//
// If there are more than 250 documents and they are stable, a poll checks the
// directory and a sixteenth of the documents, and all of them again as soon as
// anything differs. Files that are created, removed or replaced are still seen at
// the next poll; a write in place may be seen fifteen polls later.
//
// All changes between two polls are one change. It is delivered once two successive
// polls have found the same, so that a file is not read while it is being written,
// several files that are replaced together take effect together, and a file that is
// deleted and recreated is never missing. If the path is not stable for eight polls,
// the stable files are delivered without the others, and a file that differed at
// every poll is reported as faulty. The first poll is delivered at once unless a
// file was modified within the last interval.
//
// To replace a document safely, write it under another name and rename it. A
// writer that pauses for longer than an interval in the middle of a document counts
// as finished. Volumes of Kubernetes ConfigMaps are replaced atomically and so are
// read consistently.
//
// # Failures
//
// A document that cannot be read or is too long is faulty: the engine reports
// it and keeps the last good version. The same applies to a directory, a pipe, a
// socket or a device with the name of a document, which never block the source. An
// empty file is delivered like any other; the engine rejects it.
//
// If the path does not exist or cannot be read, the source is reported as
// disconnected and the engine keeps all rules. The same applies when a single file
// is deleted, and when a directory is replaced by another one that is empty, as
// happens when a file system is unmounted. A document is removed only when its
// directory can be read and does not contain it, or when the path has become a
// single file.
package file
