package list

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// List is a set of addresses, prefixes and texts. It never changes and is safe for
// concurrent use. The zero value has no entries.
type List struct {
	entries int
	addrs   int // entries among them that are addresses and prefixes
	v4, v6  family
	texts   texts
	ends    *ends // nil unless entries have an end
}

// Len returns how many entries the list was made of, repeated ones and those that have ended included.
func (l *List) Len() int { return l.entries }

// HasAddrs says whether any entry is an address or a prefix.
func (l *List) HasAddrs() bool { return l.addrs > 0 }

// HasTexts says whether any entry is a text.
func (l *List) HasTexts() bool { return l.entries > l.addrs }

// ContainsAddr says whether the list has the address or a prefix that contains it. An
// IPv4 address mapped to IPv6 counts as that IPv4 address, and zones are ignored. IPv6
// prefixes, ::/0 among them, contain no IPv4 addresses. The zero Addr is in no list. If entries have
// an end, it reads the wall clock: see [List.ContainsAddrAt].
func (l *List) ContainsAddr(addr netip.Addr) bool { return l.ContainsAddrAt(addr, l.now()) }

// ContainsAddrAt is [List.ContainsAddr] at an instant of the wall clock: an entry is on the list
// before its end.
func (l *List) ContainsAddrAt(addr netip.Addr, at clock.Instant) bool {
	switch {
	case addr.Is4():
		return l.containsAddr(wordsOf4(addr), true, at)
	case !addr.IsValid():
		return false
	}
	words := wordsOf6(addr)
	if v4, ok := words.mapped(); ok {
		return l.containsAddr(v4, true, at)
	}
	return l.containsAddr(words, false, at)
}

func (l *List) containsAddr(addr words, is4 bool, at clock.Instant) bool {
	if is4 {
		return l.v4.contains(addr) || l.ends.contains(addr, true, at)
	}
	return l.v6.contains(addr) || l.ends.contains(addr, false, at)
}

// ContainsText says whether the list has exactly this text or, if the text is an
// address, that address or a prefix that contains it. If entries have an end, it reads the wall
// clock: see [List.ContainsTextAt].
func (l *List) ContainsText(text string) bool { return l.ContainsTextAt(text, l.now()) }

// ContainsTextAt is [List.ContainsText] at an instant of the wall clock: an entry is on the list
// before its end.
func (l *List) ContainsTextAt(text string, at clock.Instant) bool {
	if l.HasTexts() && (l.texts.contains(text) || l.ends != nil && at < l.ends.texts[text]) {
		return true
	}
	if !l.HasAddrs() {
		return false
	}
	addr, is4, ok := parseAddr(text)
	return ok && l.containsAddr(addr, is4, at)
}

// HasEnds says whether any entry has an end. Only then does it matter when a list is asked.
func (l *List) HasEnds() bool { return l.ends != nil }

// LenAt returns how many entries the list has at an instant of the wall clock: those that have
// ended are left out.
func (l *List) LenAt(at clock.Instant) int {
	addrs, texts := l.ends.ended(at)
	return l.entries - addrs - texts
}

// now returns the time of the wall clock if it matters.
func (l *List) now() clock.Instant {
	if l.ends == nil {
		return 0
	}
	return clock.Instant(time.Now().UnixNano())
}

// permanentTexts returns how many texts have no end.
func (l *List) permanentTexts() int {
	count := l.entries - l.addrs
	if l.ends != nil {
		count -= len(l.ends.others)
	}
	return count
}

// size returns about how many bytes of memory the list takes.
func (l *List) size() int64 { return l.v4.size() + l.v6.size() + l.texts.size() + l.ends.size() }

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
