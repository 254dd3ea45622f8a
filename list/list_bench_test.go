package list_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/list"
)

// Module bench compares lists of ten million entries with what others have.
func BenchmarkContainsAddr(b *testing.B) {
	const entries = 1_000_000
	for name, random := range map[string]func(*rand.Rand) netip.Prefix{"IPv4": random4, "IPv6": random6} {
		r := rand.New(rand.NewPCG(1, 2))
		var builder list.Builder
		found, others := make([]netip.Addr, 0, 1<<16), make([]netip.Addr, 0, 1<<16)
		for i := range entries {
			p := random(r)
			require.NoError(b, builder.AddPrefix(p))
			if i%(entries>>16) == 0 && len(found) < cap(found) {
				found = append(found, lastOf(p.Masked()))
			}
		}
		l, err := builder.Build(context.Background())
		require.NoError(b, err)
		for len(others) < cap(others) {
			if addr := random(r).Addr(); !l.ContainsAddr(addr) {
				others = append(others, addr)
			}
		}
		r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		for which, addrs := range map[string][]netip.Addr{"Found": found, "NotFound": others} {
			b.Run(name+which, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if l.ContainsAddr(addrs[i%len(addrs)]) != (which == "Found") {
						b.Fatal("wrong")
					}
				}
			})
		}
	}
}

func random4(r *rand.Rand) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], r.Uint32())
	return netip.PrefixFrom(netip.AddrFrom4(b), []int{32, 32, 32, 24}[r.IntN(4)])
}

func random6(r *rand.Rand) netip.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], r.Uint64())
	binary.BigEndian.PutUint64(b[8:], r.Uint64())
	binary.BigEndian.PutUint16(b[:], 0x2001)
	b[2] = 0
	return netip.PrefixFrom(netip.AddrFrom16(b), []int{48, 48, 64, 128}[r.IntN(4)])
}

func BenchmarkParseAddr(b *testing.B) {
	for name, random := range map[string]func(*rand.Rand) netip.Prefix{"IPv4": random4, "IPv6": random6} {
		r := rand.New(rand.NewPCG(1, 2))
		texts := make([]string, 1<<12)
		for i := range texts {
			texts[i] = random(r).Addr().String()
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, ok := list.ParseAddr(texts[i%len(texts)]); !ok {
					b.Fatal("not read")
				}
			}
		})
	}
}
