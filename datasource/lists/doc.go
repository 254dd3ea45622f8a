// Package lists keeps the lists that access rules name up to date with a source. It is
// for authors of sources: packages datasource/file and datasource/etcd have functions
// that need one call.
//
// # Lists
//
// A source of lists is a [core.Source] with one document for each list. Instead of the
// list itself a document contains the SHA-256 of its text, because a list may have ten
// million entries. When that changes, a [Watch] opens the text, parses it in the
// background and puts it in force as a whole. One list is built at a time, so at most
// one is in memory beside those in force.
//
// # Failures
//
// A list that cannot be read, whose text does not have the SHA-256 of its document, or
// that has mistakes is not put in force: its last good version stays. Mistakes are final
// until the text changes. Everything else is tried again, with growing pauses. A list is
// removed when the source no longer has it; while the source cannot be read, all lists
// stay. They also stay when the watch ends.
//
// An empty text is a mistake, because it may be a file that is being written. A list
// without entries has a comment.
//
// A list that would lose too many entries is held back, as rules are: see
// core.Config.MaxRemoval.
//
// # Copies
//
// With [KeepCopies] a watch keeps each list in force in a file, with which the next process
// starts: it puts the copy in force at once, and compares what the source delivers with it
// as if the process had not been restarted. The file has a line with the format and a
// checksum, a line that says of which application, source and document it is, and the text.
// A copy that is damaged, of another application, or that another user can have written is
// logged and ignored. Several watches and processes need different directories, unless
// their sources have different names.
package lists
