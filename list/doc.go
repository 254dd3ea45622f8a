// Package list has lists of who may call, or may not: addresses, prefixes and exact
// texts, up to ten million of them, made for rules that look a value of each call up.
//
// A [List] never changes. [Parse] reads one from a text, a [Builder] makes one in code.
// A look-up allocates nothing, takes no lock, and hardly depends on how long the list is.
//
// A [Registry] has lists by name. A list is replaced as a whole, while calls go on: each
// call reads either the old one or the new one.
//
// # Text
//
// A text has one entry a line:
//
//	# hosts of a data centre
//	192.0.2.0/24
//	2001:db8::/32   # all of it
//	198.51.100.7
//
// A # begins a comment, at the start of a line or after white space. Empty lines, white
// space around entries, Windows line ends and a byte order mark make no difference.
//
// An entry is an IP address, a prefix such as 192.0.2.0/24, or a text, which calls must
// have exactly. A list has either addresses and prefixes or texts, so that an address
// with a mistake in it is not taken for a text, and neither is an address with something around it, as in
// 192.0.2.1:80. In quotes, as in "192.0.2.1", every entry
// is a text, whatever it looks like; quotes are those of Go and JSON, so \" and \u00e9
// work in them. Patterns do not: lists have exact texts only.
//
// An entry may have an end, as in
//
//	203.0.113.9 until 2026-12-01T00:00:00Z
//
// From that instant of the wall clock on, which is written as in RFC 3339, it is not on the list any
// more. So a text with the word until in it stands in quotes. At most a million entries have an end;
// of the same entries the one that ends last counts.
//
// IPv4 addresses mapped to IPv6 count as IPv4. Zones of addresses are ignored in calls
// and are a mistake in a list. A prefix must not have bits beyond its length, so that
// nobody blocks 10.0.0.0/8 who means 10.1.2.3/32. Entries may overlap and repeat.
package list
