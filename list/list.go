package list

import "net/netip"

// List is a set of addresses, prefixes and texts. It never changes and is safe for
// concurrent use. The zero value has no entries.
type List struct {
	entries int
	texts   map[string]struct{}
	nets    []netip.Prefix
}

// Len returns how many entries the list was made of, repeated ones included.
func (l *List) Len() int { return l.entries }

// ContainsAddr says whether the list has an address or a prefix that contains it. An
// IPv4 address mapped to IPv6 counts as that IPv4 address; its zone is ignored. The
// zero Addr is in no list.
func (l *List) ContainsAddr(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range l.nets {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// ContainsText says whether the list has exactly this text, or if the text is an address,
// an address or prefix that contains it.
func (l *List) ContainsText(text string) bool {
	if _, ok := l.texts[text]; ok {
		return true
	}
	if len(l.nets) == 0 {
		return false
	}
	addr, err := netip.ParseAddr(text)
	return err == nil && l.ContainsAddr(addr)
}

// HasAddrs says whether any entry is an address or a prefix.
func (l *List) HasAddrs() bool { return len(l.nets) > 0 }

// HasTexts says whether any entry is a text.
func (l *List) HasTexts() bool { return len(l.texts) > 0 }

// Size returns about how many bytes of memory the list takes.
func (l *List) Size() int64 { return int64(len(l.nets)) * 24 }
