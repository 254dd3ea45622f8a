package list_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/list"
)

// modelContains says what a list of prefixes has to say, by looking at each of them.
func modelContains(prefixes []netip.Prefix, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		return p.Contains(addr)
	})
}

// addresses are few and near each other, so that prefixes overlap, nest and adjoin, and
// lookups meet them.
func addresses() *rapid.Generator[netip.Addr] {
	near := rapid.SampledFrom([]byte{0, 1, 2, 3, 127, 128, 254, 255})
	return rapid.Custom(func(t *rapid.T) netip.Addr {
		var b [16]byte
		for i := range b {
			b[i] = near.Draw(t, "byte")
		}
		switch rapid.IntRange(0, 4).Draw(t, "shape") {
		case 0:
			return netip.AddrFrom4([4]byte(b[12:]))
		case 1:
			return netip.AddrFrom16(netip.AddrFrom4([4]byte(b[12:])).As16()) // mapped
		case 2: // one network, different hosts
			copy(b[:], "\x20\x01\x0d\xb8\x00\x01\x00\x02\x00\x03\x00\x04\x00\x05")
			return netip.AddrFrom16(b)
		case 3: // different networks, one host
			copy(b[8:], "\x00\x00\x00\x00\x00\x00\x00\x01")
			return netip.AddrFrom16(b)
		}
		return netip.AddrFrom16(b)
	})
}

func prefixes() *rapid.Generator[netip.Prefix] {
	return rapid.Custom(func(t *rapid.T) netip.Prefix {
		addr := addresses().Draw(t, "address")
		least := 0
		if addr.Is4In6() {
			least = 96 // a shorter one is an IPv6 prefix, which has no IPv4 addresses
		}
		bits := rapid.IntRange(least, addr.BitLen()).Draw(t, "bits")
		if rapid.IntRange(0, 3).Draw(t, "kind of length") == 0 {
			bits = rapid.SampledFrom([]int{least, addr.BitLen(), min(least+16, addr.BitLen()), addr.BitLen() - 1}).Draw(t, "special bits")
		}
		return netip.PrefixFrom(addr, bits).Masked()
	})
}

// nearby returns addresses at and around the ends of prefixes.
func nearby(given []netip.Prefix) (addrs []netip.Addr) {
	for _, p := range given {
		first := p.Addr()
		last := lastOf(p)
		addrs = append(addrs, first, last, first.Prev(), last.Next(), netip.AddrFrom16(first.As16()), netip.AddrFrom16(last.As16()))
	}
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool { return !a.IsValid() })
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// The tables of large lists have filters before them, IPv4 has a table of its own, and so have IPv6
// prefixes of usual lengths.
func TestLargeListsContainTheirPrefixesAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for name, c := range map[string]struct {
		lengths []int
		entries int
		random  func(*rand.Rand) netip.Prefix
	}{
		"IPv4":                   {[]int{24, 32}, 250_000, random4},
		"IPv6 hosts":             {[]int{128}, 250_000, random6},
		"IPv6 of lengths":        {[]int{48, 64, 128}, 250_000, random6},
		"IPv6 in many networks":  {[]int{44, 48, 64, 76, 80, 128}, 450_000, spread6},
		"IPv6 in short prefixes": {[]int{33, 40, 48}, 250_000, spread6},
		"IPv6 sites and subnets": {[]int{48, 49, 52, 56, 60, 63, 64}, 250_000, spread6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			lengths, entries := c.lengths, c.entries/longtest.Of(6, 1)
			given := make(map[netip.Prefix]bool, entries)
			var builder list.Builder
			add := func(p netip.Prefix) {
				given[p] = true
				require.NoError(t, builder.AddPrefix(p))
			}
			for _, length := range lengths {
				add(netip.PrefixFrom(netip.IPv6Unspecified(), length).Masked())
			}
			for n := 0; n < 1000; n += 2 { // many of one key
				add(netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x::/48", n)))
			}
			for range entries {
				add(netip.PrefixFrom(c.random(r).Addr(), lengths[r.IntN(len(lengths))]).Masked())
			}
			l, err := builder.Build(context.Background())
			require.NoError(t, err)
			isIn := func(addr netip.Addr) bool {
				return slices.ContainsFunc(append(lengths, 48), func(length int) bool {
					return given[netip.PrefixFrom(addr, length).Masked()]
				})
			}
			for p := range given {
				for _, addr := range []netip.Addr{p.Addr(), lastOf(p)} {
					require.Equal(t, !addr.Is4In6(), l.ContainsAddr(addr), "%v of %v", addr, p)
				}
				if next := lastOf(p).Next(); next.IsValid() {
					require.Equal(t, isIn(next), l.ContainsAddr(next), "%v after %v", next, p)
				}
			}
			for range entries {
				addr := c.random(r).Addr()
				require.Equal(t, isIn(addr), l.ContainsAddr(addr), addr)
			}
		})
	}
}

// spread6 returns an address in one of many networks.
func spread6(r *rand.Rand) netip.Prefix {
	b := random6(r).Addr().As16()
	binary.BigEndian.PutUint16(b[2:], uint16(r.IntN(1<<14)))
	return netip.PrefixFrom(netip.AddrFrom16(b), 128)
}

func TestListContainsWhatAnyOfItsPrefixesContains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(prefixes(), 0, 60).Draw(t, "prefixes")
		var text strings.Builder
		var inCode list.Builder
		for _, p := range given {
			text.WriteString(p.String() + "\n")
			require.NoError(t, inCode.AddPrefix(p))
		}
		l, err := list.Parse(context.Background(), strings.NewReader(text.String()), list.Options{})
		require.NoError(t, err)
		same, err := inCode.Build(context.Background())
		require.NoError(t, err)
		require.Equal(t, len(given), l.Len())
		asked := append(nearby(given), rapid.SliceOfN(addresses(), 1, 20).Draw(t, "addresses")...)
		for _, addr := range asked {
			want := modelContains(given, addr)
			require.Equal(t, want, l.ContainsAddr(addr), "%v in %v", addr, given)
			require.Equal(t, want, same.ContainsAddr(addr), "%v in %v", addr, given)
			require.Equal(t, want, l.ContainsText(addr.String()), "%v in %v", addr, given)
			if addr.Is6() {
				require.Equal(t, want, l.ContainsAddr(addr.WithZone("eth0")), "%v with a zone in %v", addr, given)
			}
		}
	})
}

// Thousands of ranges of one key stand in a bitmap, fewer in a sorted list, one alone in
// the hash table.
func TestListContainsWhatDensePrefixesContain(t *testing.T) {
	for _, c := range []struct {
		name string
		step int
	}{{"few ranges", 4096}, {"2048 ranges", 32}, {"2049 ranges or more", 31}, {"every other address", 2}, {"all addresses", 1}} {
		t.Run(c.name, func(t *testing.T) {
			var b list.Builder
			for host := 0; host < 1<<16; host += c.step {
				require.NoError(t, b.AddPrefix(hostPrefix4(uint16(host))))
				require.NoError(t, b.AddPrefix(hostPrefix6(uint16(host))))
			}
			l, err := b.Build(context.Background())
			require.NoError(t, err)
			for host := range 1 << 16 {
				want := host%c.step == 0
				if want != l.ContainsAddr(hostPrefix4(uint16(host)).Addr()) || want != l.ContainsAddr(hostPrefix6(uint16(host)).Addr()) {
					require.Fail(t, "wrong", "host %d", host)
				}
			}
			require.False(t, l.ContainsAddr(netip.MustParseAddr("10.2.0.0")))
			require.False(t, l.ContainsAddr(netip.MustParseAddr("10.0.255.255")))
			require.False(t, l.ContainsAddr(netip.MustParseAddr("2001:db8::1:0")))
		})
	}
}

// From some thousand keys on, those of IPv4 and of short IPv6 prefixes have a table of their own.
func TestListContainsWhatPrefixesOfManyKeysContain(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	step := longtest.Of(25, 5) // 13,108 keys
	var b list.Builder
	add := func(prefix string) { require.NoError(t, b.AddPrefix(netip.MustParsePrefix(prefix))) }
	for key := 0; key < 1<<16; key += step {
		add(fmt.Sprintf("%d.%d.128.0/17", key>>8, key&0xff))
		add(fmt.Sprintf("%d.%d.3.4/32", key>>8, key&0xff))
		add(fmt.Sprintf("%x:8000::/17", key))
		add(fmt.Sprintf("%x:7000:1::/48", key))
	}
	for host := 0; host < 1<<16; host += 3 { // a bit for each
		require.NoError(t, b.AddPrefix(hostPrefix4(uint16(host))))
	}
	for host := 0; host < 3000; host += 2 { // bounds
		add(fmt.Sprintf("10.3.%d.%d/32", host>>8, host&0xff))
	}
	l, err := b.Build(context.Background())
	require.NoError(t, err)
	for key := range 1 << 16 {
		if key>>8 == 10 {
			continue
		}
		for addr, isIn := range map[string]bool{
			fmt.Sprintf("%d.%d.128.0", key>>8, key&0xff):      true,
			fmt.Sprintf("%d.%d.255.255", key>>8, key&0xff):    true,
			fmt.Sprintf("%d.%d.127.255", key>>8, key&0xff):    false,
			fmt.Sprintf("%d.%d.3.4", key>>8, key&0xff):        true,
			fmt.Sprintf("%d.%d.3.5", key>>8, key&0xff):        false,
			fmt.Sprintf("%x:ffff::1", key):                    true,
			fmt.Sprintf("%x:7fff::1", key):                    false,
			fmt.Sprintf("%x:7000:1::1", key):                  true,
			fmt.Sprintf("%x:7000:2::1", key):                  false,
			fmt.Sprintf("::ffff:%d.%d.3.4", key>>8, key&0xff): true,
		} {
			require.Equal(t, isIn && key%step == 0, l.ContainsText(addr), addr)
		}
	}
	for host := range 1 << 16 {
		require.Equal(t, host%3 == 0, l.ContainsAddr(hostPrefix4(uint16(host)).Addr()), host)
		want := host < 3000 && host%2 == 0
		require.Equal(t, want, l.ContainsText(fmt.Sprintf("10.3.%d.%d", host>>8, host&0xff)), host)
	}
	require.Less(t, l.Size(), int64(5<<20))
}

func hostPrefix4(host uint16) netip.Prefix {
	b := [4]byte{10, 1}
	binary.BigEndian.PutUint16(b[2:], host)
	return netip.PrefixFrom(netip.AddrFrom4(b), 32)
}

func hostPrefix6(host uint16) netip.Prefix {
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	binary.BigEndian.PutUint16(b[14:], host)
	return netip.PrefixFrom(netip.AddrFrom16(b), 128)
}

func TestListContainsItsTextsAndNoOthers(t *testing.T) {
	texts := rapid.OneOf(rapid.StringMatching(`[ab]{0,3}`), rapid.String(), rapid.StringN(0, -1, list.MaxText))
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(texts, 0, 50).Draw(t, "texts")
		var b list.Builder
		for _, text := range given {
			require.NoError(t, b.AddText(text))
		}
		l, err := b.Build(context.Background())
		require.NoError(t, err)
		for _, text := range append(given, rapid.SliceOfN(texts, 1, 20).Draw(t, "others")...) {
			require.Equal(t, slices.Contains(given, text), l.ContainsText(text), "%q in %q", text, given)
		}
	})
}

// ParseAddr reads exactly what netip reads.
func TestParseAddrReadsWhatNetipReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := addresses().Draw(t, "address").String()
		if rapid.Bool().Draw(t, "expanded") {
			text = netip.MustParseAddr(text).StringExpanded()
		}
		if rapid.Bool().Draw(t, "spoiled") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", ":", "::", ".", "0", "%", "%e", "f", "g", "255", " "}).Draw(t, "with")
			text = text[:at] + with + text[at+rapid.IntRange(0, 1).Draw(t, "gone"):]
		}
		sameAsNetip(t, text)
	})
}

func sameAsNetip(t require.TestingT, text string) {
	want, err := netip.ParseAddr(text)
	got, ok := list.ParseAddr(text)
	require.Equal(t, err == nil, ok, "%q: %v", text, err)
	if ok {
		require.Equal(t, want.Unmap().WithZone(""), got, "%q", text)
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, text := range []string{"1.2.3.4", "::1", "::ffff:1.2.3.4%eth0", "1:2:3:4:5:6:7:8", "1::", "::1.2.3.04", "1:2:3:4:5:6:7::", "a.b.c.d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { sameAsNetip(t, text) })
}
