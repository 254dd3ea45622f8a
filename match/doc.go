// Package match tells which names a pattern means.
//
// A pattern is a glob for the whole name:
//
//   - any run of characters, none and "/" and ":" among them
//     ?        one character
//     [abc]    one of these characters
//     [a-z]    one of this range
//     [!a-z]   one that is none of these
//     \        takes the character after it for itself
//
// After a "~" it is a regular expression of Go, which is looked for anywhere in
// the name unless it begins with ^ and ends with $.
//
// Patterns are judged when they are compiled; matching cannot fail and takes a
// time proportional to the length of the name. An [Index] finds, of many patterns,
// those that match.
package match
