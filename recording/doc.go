// Package recording holds calls that an engine has recorded: what they asked for, and what became of
// them. A [Recording] comes from core.Engine.Record, is written to a file by [Write], read by [Read],
// and replayed by the package simulate. docs/recording.md describes the file.
//
// A recording tells who called what and when. Values of attributes are hashed unless the engine was
// told otherwise, but hashes of one recording still tell which calls are of the same user: keep it as
// other personal data.
package recording
