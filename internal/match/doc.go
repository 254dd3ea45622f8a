// Package match matches names against patterns.
//
// A pattern is a glob for the whole name:
//
//	pattern  matches
//	*        any run of characters, also none, also "/" and ":"
//	?        one character
//	[abc]    one of these characters
//	[a-z]    one character of this range
//	[!a-z]   one character that is none of these
//	\*       the character after the backslash, here a star
//
// After a "~" it is a regular expression of Go, which is looked for anywhere in
// the name unless it begins with ^ and ends with $.
//
// Compile reports every mistake in a pattern. Matching cannot fail and takes time
// in proportion to the length of the name. An [Index] finds, among many patterns,
// those that match a name.
package match
