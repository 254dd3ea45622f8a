package clientip

import (
	"net"
	"net/netip"
	"strings"
)

// Address is an IP address without zone and port; an IPv4-mapped IPv6 address is the
// IPv4 address. The zero value is the unknown address. No prefix contains it.
type Address struct {
	addr netip.Addr
	text string // in canonical form; "" if it is not made yet
}

// Local returns the address of peers on a Unix socket: 127.0.0.1, because they are
// processes of this machine, as peers with that address are.
func Local() Address {
	return Address{netip.AddrFrom4([4]byte{127, 0, 0, 1}), "127.0.0.1"}
}

// Of returns the address of a peer: of a [net.TCPAddr] and a [net.UDPAddr] theirs, of
// a [net.UnixAddr] that of [Local], and of others that of their text, see [Parse].
func Of(peer net.Addr) Address {
	switch p := peer.(type) {
	case nil:
		return Address{}
	case *net.TCPAddr:
		return fromIP(p.IP)
	case *net.UDPAddr:
		return fromIP(p.IP)
	case *net.UnixAddr:
		return Local()
	}
	return Parse(peer.String())
}

func fromIP(ip net.IP) Address {
	addr, _ := netip.AddrFromSlice(ip)
	return Address{addr: addr.Unmap()}
}

// maxText is the length of the longest text of an address, without zone, brackets and
// port.
const maxText = len("2001:0db8:0000:0000:0000:ffff:255.255.255.255")

// Parse returns the address in a text: an address, alone or with a port as in
// "192.0.2.1:80" and "[2001:db8::1]:80", and with spaces around it. A port may also be
// an obfuscated one (RFC 7239), as in "192.0.2.1:_a1". It returns the zero Address if
// the text is anything else. If the text has the canonical form of the address,
// [Resolver.Text] returns that part of it.
func Parse(text string) Address {
	text, ok := withoutPort(trim(text))
	if !ok {
		return Address{}
	}
	text, zone, zoned := strings.Cut(text, "%")
	if text == "" || len(text) > maxText || zoned && zone == "" {
		return Address{}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || zoned && !addr.Is6() {
		return Address{}
	}
	if addr.Is4In6() {
		return Address{addr: addr.Unmap()}
	}
	if addr.Is4() || isCanonical(text, addr) { // netip parses no other form of IPv4
		return Address{addr, text}
	}
	return Address{addr: addr}
}

// isValid reports whether the address is known.
func (a Address) isValid() bool { return a.addr.IsValid() }

func isCanonical(text string, addr netip.Addr) bool {
	var buffer [maxText]byte
	return string(addr.AppendTo(buffer[:0])) == text
}

// withoutPort returns the text of an address without brackets and port; ok is false if
// those are malformed.
func withoutPort(text string) (host string, ok bool) {
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		host, port, closed := strings.Cut(inner, "]")
		return host, closed && strings.Contains(host, ":") && (port == "" || isPort(port))
	}
	colon := strings.IndexByte(text, ':')
	if colon < 0 || strings.IndexByte(text[colon+1:], ':') >= 0 { // IPv4, or IPv6 without brackets
		return text, true
	}
	return text[:colon], isPort(text[colon:])
}

// isPort reports whether the text is a colon and a port, a number or obfuscated.
func isPort(text string) bool {
	if len(text) < 2 || text[0] != ':' {
		return false
	}
	if port, obfuscated := strings.CutPrefix(text[1:], "_"); obfuscated {
		return port != "" && strings.IndexFunc(port, isNotObfuscated) < 0
	}
	const maxDigits = 5
	return len(text) <= 1+maxDigits && strings.IndexFunc(text[1:], isNoDigit) < 0
}

func isNoDigit(c rune) bool { return c < '0' || c > '9' }

func isNotObfuscated(c rune) bool {
	isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	return !isLetter && isNoDigit(c) && c != '.' && c != '_' && c != '-'
}

// trim removes the spaces and tabs around a text.
func trim(text string) string {
	for text != "" && isSpace(text[0]) {
		text = text[1:]
	}
	for text != "" && isSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }
