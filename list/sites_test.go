package list

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSitesHaveJustThePrefixesThatFoundAPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Few different bits, so that prefixes contain each other and differ in single bits.
		address := rapid.Custom(func(t *rapid.T) uint64 {
			bits := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 8, 15, 16, 17, 31, 32, 47, 48, 62, 63}), 0, 3).Draw(t, "bits")
			address := rapid.SampledFrom([]uint64{0, 0x2001_0db8_0000_0000, ^uint64(0)}).Draw(t, "base")
			for _, bit := range bits {
				address ^= 1 << bit
			}
			return address
		})
		groups := 4 * rapid.IntRange(1, 16).Draw(t, "groups/4")
		s := &sites{seeds{a: rapid.Uint64().Draw(t, "a"), b: rapid.Uint64().Draw(t, "b") | 1}, make([][4]uint64, groups)}
		type prefix struct {
			first uint64
			free  int
		}
		var added []prefix
		for _, first := range rapid.SliceOfN(address, 1, 40).Draw(t, "prefixes") {
			p := prefix{free: rapid.IntRange(0, levelBits).Draw(t, "free")}
			p.first = first >> p.free << p.free
			if s.add(p.first, p.free) {
				added = append(added, p)
			}
		}
		require.NotEmpty(t, added)
		for _, a := range rapid.SliceOfN(address, 100, 100).Draw(t, "addresses") {
			want := false
			for _, p := range added {
				want = want || a>>p.free == p.first>>p.free
			}
			require.Equal(t, want, s.has(a), "%x", a)
		}
	})
}

// Sites whose scrambled numbers are next to each other differ in the last bit that a word has of them.
func TestSitesTellScrambledNeighboursApart(t *testing.T) {
	t.Parallel()
	const mask = 1<<siteBits - 1
	inverse := func(odd uint64) uint64 { // by Newton's method: each step doubles the bits that are right
		x := odd
		for range 6 {
			x *= 2 - odd*x
		}
		return x
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		s := &sites{seeds{a: r.Uint64(), b: r.Uint64() | 1}, make([][4]uint64, 4)}
		unscrambled := func(x uint64) (high uint64) {
			x = x * inverse(s.seeds.a|1) & mask
			return (x ^ x>>(siteBits/2)) * inverse(s.seeds.b) & mask << levelBits
		}
		number := r.Uint64() & mask &^ 1
		first, second := unscrambled(number), unscrambled(number+1)
		require.True(t, s.add(first, levelBits))
		require.True(t, s.has(first))
		require.False(t, s.has(second))
	}
}

// Neighbouring sites, as networks have them, spread over the groups.
func TestFewPrefixesFindTheirGroupFull(t *testing.T) {
	t.Parallel()
	const count = 100_000
	for name, site := range map[string]func(i uint64) uint64{
		"in a row":       func(i uint64) uint64 { return 0x2001_0db8_0000 + i },
		"every 256th":    func(i uint64) uint64 { return i << 8 },
		"high bits only": func(i uint64) uint64 { return i << 31 },
	} {
		r := rand.New(rand.NewPCG(1, 2))
		s := &sites{seeds{a: r.Uint64(), b: r.Uint64() | 1}, make([][4]uint64, count/perGroup/4*4)}
		full := 0
		for i := range uint64(count) {
			if !s.add(site(i)<<levelBits, levelBits) {
				full++
			}
		}
		assert.Less(t, float64(full)/count, .05, name)
	}
}

func TestSitesTakeFewPrefixesOfAKey(t *testing.T) {
	t.Parallel()
	rangesOf := func(bounds ...[2]uint16) (group []slot[uint64]) {
		for _, b := range bounds {
			group = append(group, slot[uint64]{key: 7, first: b[0], last: b[1], ranges: single})
		}
		return group
	}
	every := func(step uint16, count int) (bounds [][2]uint16) {
		for i := range uint16(count) {
			bounds = append(bounds, [2]uint16{i * step, i * step})
		}
		return bounds
	}
	for name, test := range map[string]struct {
		level int
		group []slot[uint64]
		takes int
	}{
		"subnets":                 {subnetLevel, rangesOf([2]uint16{0, 0xff}, [2]uint16{0x4000, 0x7fff}, [2]uint16{0xffff, 0xffff}), 3},
		"three subnets in a row":  {subnetLevel, rangesOf([2]uint16{4, 6}), 0},
		"two that are no prefix":  {subnetLevel, rangesOf([2]uint16{5, 6}), 0},
		"a prefix and another":    {subnetLevel, rangesOf([2]uint16{0, 1}, [2]uint16{3, 4}), 1},
		"as many subnets as go":   {subnetLevel, rangesOf(every(2, maxSubnets)...), maxSubnets},
		"too many subnets":        {subnetLevel, rangesOf(every(2, maxSubnets+1)...), 0},
		"sites":                   {siteLevel, rangesOf([2]uint16{0, 0}, [2]uint16{9, 9}), 2},
		"a prefix of 47 bits":     {siteLevel, rangesOf([2]uint16{0, 1}), 0},
		"as many sites as go":     {siteLevel, rangesOf(every(2, many-1)...), many - 1},
		"too many sites of a key": {siteLevel, rangesOf(every(2, many)...), 0},
	} {
		takes := 0
		for _, r := range test.group {
			if _, _, ok := prefixOf(test.level, len(test.group), r); ok {
				takes++
			}
		}
		assert.Equal(t, test.takes, takes, name)
	}
}
