package clientip

import (
	"net/netip"
	"slices"

	"github.com/penstock-go/penstock/adapters/priority"
)

// Options say whom a server believes: they are the option Clients of all adapters for servers,
// and configure a [Resolver]. The zero value believes nobody: the peer of the connection is
// the client, and no caller chooses the priority of its calls.
type Options struct {
	// TrustedProxies are the addresses of proxies whose header field is believed. Name
	// your own proxies only: whoever has one of these addresses chooses the address
	// that rules see. Each address is compared with one prefix after the other, so keep
	// them to a few dozen. Invalid prefixes contain no address. Defaults to none.
	TrustedProxies []netip.Prefix

	// UseForwarded selects the field Forwarded (RFC 7239) in place of X-Forwarded-For.
	// The other field is never read, for a proxy that writes one of them passes on what
	// clients write into the other. Defaults to false.
	UseForwarded bool

	// IPv6Prefix is how many bits of an IPv6 address identify a client, for
	// [Resolver.PrefixText]: networks of clients have many addresses, usually 2^64.
	// More than 128 count as 128. Defaults to 64, as do values below 1.
	IPv6Prefix int

	// PriorityCallers are the addresses of callers who may choose the priority of their
	// calls, and the highest that they may choose; the first that contain an address count.
	// Keep them to a few dozen, too. Defaults to none.
	PriorityCallers []priority.Callers
}

const (
	defaultIPv6Prefix = 64

	// maxHops is how many addresses of a header field are looked at.
	maxHops = 64

	// maxBytes is how many bytes of a header field are looked at.
	maxBytes = 16 << 10
)

// Resolver finds the addresses of clients, and the priorities that they may choose. Make it with
// [New]. It is safe for concurrent use.
type Resolver struct {
	trusted      []netip.Prefix
	callers      []callers
	useForwarded bool
	ipv6Prefix   int
	texts        texts
}

// New returns a resolver with the options.
func New(options Options) *Resolver {
	r := &Resolver{useForwarded: options.UseForwarded, ipv6Prefix: defaultIPv6Prefix}
	if options.IPv6Prefix > 0 {
		r.ipv6Prefix = min(options.IPv6Prefix, 128)
	}
	r.trusted = allUnmapped(options.TrustedProxies)
	for _, c := range options.PriorityCallers {
		r.callers = append(r.callers, callers{allUnmapped(c.From), c.Max})
	}
	r.callers = slices.Clip(r.callers)
	return r
}

// allUnmapped returns the prefixes as [unmapped] returns each.
func allUnmapped(prefixes []netip.Prefix) []netip.Prefix {
	list := make([]netip.Prefix, len(prefixes))
	for i, prefix := range prefixes {
		list[i] = unmapped(prefix)
	}
	return list
}

// unmapped returns the prefix of IPv4 addresses for one of IPv4-mapped addresses.
func unmapped(prefix netip.Prefix) netip.Prefix {
	const mapped = 96 // bits before the IPv4 address
	if prefix.Addr().Is4In6() && prefix.Bits() >= mapped {
		return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mapped)
	}
	return prefix
}

// FieldName returns the name of the header field that the resolver reads, in the
// canonical form of [net/http.Header].
func (r *Resolver) FieldName() string {
	if r.useForwarded {
		return "Forwarded"
	}
	return "X-Forwarded-For"
}

// Trusts reports whether the address is that of a trusted proxy.
func (r *Resolver) Trusts(address Address) bool { return contain(r.trusted, address) }

func contain(prefixes []netip.Prefix, address Address) bool {
	for i := range prefixes {
		if prefixes[i].Contains(address.addr) {
			return true
		}
	}
	return false
}

// Client returns the address of the client of a request from the peer. lines are the
// values of the header field, in the order in which they arrived.
//
// If the peer is trusted, the walk goes from the last address of the last line to the
// left, as long as addresses are trusted, and ends at the first that is not. It also
// ends where an element is no address ("unknown", an obfuscated "_name", nothing,
// anything malformed), at the first address, after 64 addresses and after 16 KiB. The
// result then is the last address that was reached: a trusted proxy.
func (r *Resolver) Client(peer Address, lines []string) Address {
	if !r.Trusts(peer) {
		return peer
	}
	client := peer
	walk := walk{lines: lines, budget: maxBytes, quotes: r.useForwarded}
	for range maxHops {
		element, ok := walk.next()
		if !ok {
			break
		}
		hop := r.hop(element)
		if !hop.IsValid() {
			break
		}
		client = hop
		if !r.Trusts(client) {
			break
		}
	}
	return client
}

// hop returns the address in an element of the field; the zero Address if there is
// none.
func (r *Resolver) hop(element string) Address {
	if r.useForwarded {
		return Parse(forwardedFor(element))
	}
	return Parse(element)
}
