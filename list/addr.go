package list

import "net/netip"

// ParseAddr returns the IP address that a text is, as [netip.ParseAddr] reads it, or
// false. An IPv4 address mapped to IPv6 is returned as the IPv4 address, and zones are
// left out. Other than netip it never allocates, so it is fit for texts that clients
// choose.
func ParseAddr(text string) (netip.Addr, bool) {
	addr, is4, ok := parseAddr(text)
	switch {
	case !ok:
		return netip.Addr{}, false
	case is4:
		v4 := uint32(addr.high >> 32)
		return netip.AddrFrom4([4]byte{byte(v4 >> 24), byte(v4 >> 16), byte(v4 >> 8), byte(v4)}), true
	}
	return netip.AddrFrom16(addr.bytes()), true
}

// chars is a text, or a line that is being read.
type chars interface{ string | []byte }

// parseAddr reads an address. Mapped IPv4 addresses are IPv4, zones are left out.
func parseAddr[T chars](text T) (addr words, is4, ok bool) {
	addr, is4, zone, ok := readAddr(text)
	return addr, is4, ok && zone != 0
}

// readAddr reads an address and tells how long its zone is, 0 if it is empty, -1 if there
// is none.
func readAddr[T chars](text T) (addr words, is4 bool, zone int, ok bool) {
	for i := range min(len(text), 5) { // a group has up to four digits
		switch text[i] {
		case '.':
			v4, ok := parse4(text)
			return words{high: uint64(v4) << 32}, true, -1, ok
		case ':':
			zone := -1
			for j := i; j < len(text); j++ {
				if text[j] == '%' {
					zone, text = len(text)-j-1, text[:j]
					break
				}
			}
			addr, ok := parse6(text)
			if v4, is4 := addr.mapped(); is4 {
				return v4, true, zone, ok
			}
			return addr, false, zone, ok
		}
	}
	return words{}, false, -1, false
}

// parse4 reads four numbers of up to 255, without leading zeros.
func parse4[T chars](text T) (addr uint32, ok bool) {
	at := 0
	for part := range 4 {
		if part > 0 {
			if at == len(text) || text[at] != '.' {
				return 0, false
			}
			at++
		}
		start, number := at, uint32(0)
		for at < len(text) && '0' <= text[at] && text[at] <= '9' && at-start < 3 {
			number = 10*number + uint32(text[at]-'0')
			at++
		}
		if at == start || number > 255 || at-start > 1 && text[start] == '0' {
			return 0, false
		}
		addr = addr<<8 | number
	}
	return addr, at == len(text)
}

// parse6 reads an IPv6 address without a zone.
func parse6[T chars](text T) (addr words, ok bool) {
	var groups [8]uint16
	count, gap, at := 0, -1, 0 // gap: how many groups stand before ::
	if len(text) >= 2 && text[0] == ':' && text[1] == ':' {
		gap, at = 0, 2
	}
	for at < len(text) && count < 8 {
		start, group := at, uint16(0)
		for at < len(text) {
			digit := hexValue(text[at])
			if digit > 15 {
				break
			}
			if at-start == 4 {
				return words{}, false
			}
			group = group<<4 | digit
			at++
		}
		if at == start {
			return words{}, false
		}
		if at < len(text) && text[at] == '.' {
			v4, ok := parse4(text[start:])
			if !ok || count > 6 {
				return words{}, false
			}
			groups[count], groups[count+1] = uint16(v4>>16), uint16(v4) //nolint:gosec // count is at most 6
			count, at = count+2, len(text)
			break
		}
		groups[count] = group
		count++
		if at == len(text) {
			break
		}
		if text[at] != ':' || at+1 == len(text) {
			return words{}, false
		}
		at++
		if text[at] == ':' {
			if gap >= 0 {
				return words{}, false
			}
			gap, at = count, at+1
		}
	}
	if at < len(text) || (count < 8) != (gap >= 0) {
		return words{}, false
	}
	if gap >= 0 {
		copy(groups[8-(count-gap):], groups[gap:count])
		clear(groups[gap : 8-(count-gap)])
	}
	return wordsOfGroups(groups), true
}

func wordsOfGroups(g [8]uint16) words {
	return words{
		uint64(g[0])<<48 | uint64(g[1])<<32 | uint64(g[2])<<16 | uint64(g[3]),
		uint64(g[4])<<48 | uint64(g[5])<<32 | uint64(g[6])<<16 | uint64(g[7]),
	}
}

// hexValue returns the value of a digit, 16 if it is none. It has no branches, since half of
// them would be mispredicted.
func hexValue(c byte) uint16 {
	value, letter := uint16(c)-'0', uint16(c|0x20)-'a'
	if value > 9 {
		value = 16
	}
	if letter < 6 {
		value = 10 + letter
	}
	return value
}

// parsePrefix reads an address or a prefix as lists have them: without a zone, and
// without bits beyond the length.
func parsePrefix[T chars](text T) (addr words, length int, is4, ok bool) {
	slash := len(text) - 1
	for slash >= 0 && slash >= len(text)-4 && text[slash] != '/' {
		slash--
	}
	if slash < 0 || text[slash] != '/' {
		addr, is4, zone, ok := readAddr(text)
		if is4 {
			return addr, 32, true, ok && zone < 0
		}
		return addr, 128, false, ok && zone < 0
	}
	addr, is4, zone, ok := readAddr(text[:slash])
	length, sound := parseLength(text[slash+1:])
	if !ok || !sound || zone >= 0 {
		return words{}, 0, false, false
	}
	width := 128
	if is4 {
		width = 32
		if isMapped(text) {
			length -= 96
		}
	}
	if length < 0 || length > width {
		return words{}, 0, false, false
	}
	return addr, length, is4, addr == addr.masked(length)
}

// isMapped says whether an IPv4 address is written as an IPv6 address.
func isMapped[T chars](text T) bool {
	for i := range len(text) {
		if text[i] == ':' {
			return true
		}
	}
	return false
}

// parseLength reads the length of a prefix.
func parseLength[T chars](text T) (length int, ok bool) {
	if len(text) == 0 || len(text) > 3 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		length = 10*length + int(text[i]-'0')
	}
	return length, true
}
