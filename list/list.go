package list

import (
	"hash/maphash"
	"net/netip"
)

// List is a set of addresses, prefixes and texts. It never changes and is safe for
// concurrent use. The zero value has no entries.
type List struct {
	entries int
	addrs   int // entries among them that are addresses and prefixes
	v4, v6  family
	texts   texts
}

// Len returns how many entries the list was made of, repeated ones included.
func (l *List) Len() int { return l.entries }

// HasAddrs says whether any entry is an address or a prefix.
func (l *List) HasAddrs() bool { return l.addrs > 0 }

// HasTexts says whether any entry is a text.
func (l *List) HasTexts() bool { return l.entries > l.addrs }

// ContainsAddr says whether the list has the address or a prefix that contains it. An
// IPv4 address mapped to IPv6 counts as that IPv4 address, and zones are ignored. IPv6
// prefixes, ::/0 among them, contain no IPv4 addresses. The zero Addr is in no list.
func (l *List) ContainsAddr(addr netip.Addr) bool {
	switch {
	case addr.Is4():
		return l.v4.contains(wordsOf4(addr))
	case !addr.IsValid():
		return false
	}
	words := wordsOf6(addr)
	if v4, ok := words.mapped(); ok {
		return l.v4.contains(v4)
	}
	return l.v6.contains(words)
}

// ContainsText says whether the list has exactly this text or, if the text is an
// address, that address or a prefix that contains it.
func (l *List) ContainsText(text string) bool {
	if l.HasTexts() && l.texts.contains(text) {
		return true
	}
	if !l.HasAddrs() {
		return false
	}
	addr, is4, ok := parseAddr(text)
	return ok && (is4 && l.v4.contains(addr) || !is4 && l.v6.contains(addr))
}

// Size returns about how many bytes of memory the list takes.
func (l *List) Size() int64 { return l.v4.size() + l.v6.size() + l.texts.size() }

// seeds are chosen at random for each list, so that nobody who gets addresses into lists
// can make their look-ups slow.
type seeds struct {
	text maphash.Seed
	a, b uint64
}

func newSeeds() seeds {
	s := maphash.MakeSeed()
	return seeds{s, maphash.String(s, "a"), maphash.String(s, "b") | 1}
}
