package clientip

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
)

// Unknown is the text of an address that is not known: the client of a connection that
// has no addresses, such as one in memory. All such clients have this one text, which
// is no address.
const Unknown = "unknown"

// Text returns the canonical text of an address, [Unknown] for the zero Address. It
// allocates only if the text of [Parse] did not have that form and the resolver has not
// made it lately.
func (r *Resolver) Text(address Address) string {
	switch {
	case address.text != "":
		return address.text
	case !address.isValid():
		return Unknown
	}
	return r.texts.of(netip.PrefixFrom(address.addr, address.addr.BitLen()))
}

// PrefixText returns the text of what identifies a client: an IPv4 address as
// [Resolver.Text] does, and of an IPv6 address the network of [Options.IPv6Prefix] bits,
// such as "2001:db8:1:2::/64". It allocates only if the resolver has not made the text
// lately.
func (r *Resolver) PrefixText(address Address) string {
	if !address.addr.Is6() || r.ipv6Prefix == 128 {
		return r.Text(address)
	}
	prefix, _ := address.addr.Prefix(r.ipv6Prefix) // an error only for other numbers of bits
	return r.texts.of(prefix)
}

// textSlots is how many texts are cached.
const textSlots = 1 << textBits

const textBits = 8

// texts makes texts of addresses and prefixes. It is a direct-mapped cache: each slot
// keeps the last text.
type texts struct {
	slots [textSlots]atomic.Pointer[cachedText]
}

type cachedText struct {
	prefix netip.Prefix
	text   string
}

// of returns the text of a prefix, without the length if it is a whole address.
func (t *texts) of(prefix netip.Prefix) string {
	slot := &t.slots[slotOf(prefix.Addr())]
	if cached := slot.Load(); cached != nil && cached.prefix == prefix {
		return cached.text
	}
	made := &cachedText{prefix: prefix}
	if prefix.IsSingleIP() {
		made.text = prefix.Addr().String()
	} else {
		made.text = prefix.String()
	}
	slot.Store(made)
	return made.text
}

// slotOf spreads addresses. Clients that aim at one slot gain nothing: a text that is not
// cached is made anew.
func slotOf(addr netip.Addr) uint64 {
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	bytes := addr.As16()
	high, low := binary.BigEndian.Uint64(bytes[:8]), binary.BigEndian.Uint64(bytes[8:])
	return ((high*spread ^ low) * spread) >> (64 - textBits)
}
