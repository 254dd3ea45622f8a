package list

import (
	"cmp"
	"context"
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// family is a set of prefixes of IPv4 or of IPv6 addresses.
//
// It is cut into levels of 16 bits: a prefix of 33 to 48 bits stands in level 2, where
// its first 32 bits find, in a hash table, the range of the next 16 bits that it covers.
// So a look-up takes one step for each level that has any prefixes, two at most for
// IPv4 and eight for IPv6, however many prefixes there are. Of most levels it needs nothing
// but the filter.
type family struct {
	seeds seeds

	direct *direct                     // prefixes of 17 to 32 bits if there are many, else nil
	narrow [narrowLevels]table[uint64] // other prefixes of up to 80 bits
	wide   [wideLevels]table[words]    // longer ones
	levels uint8                       // a bit for each level that has any in these
}

const (
	levelBits    = 16
	narrowLevels = 5 // those whose keys, the bits before, fit in 64
	wideLevels   = 3
	allLevels    = narrowLevels + wideLevels
	directLevel  = 1 // whose keys have 16 bits
)

// words are the 128 bits of an address, the first ones first. IPv4 addresses have 32.
type words struct{ high, low uint64 }

func wordsOf4(addr netip.Addr) words {
	b := addr.As4()
	return words{high: uint64(binary.BigEndian.Uint32(b[:])) << 32}
}

// wordsOf6 reads the address from where AppendBinary writes it: As16 makes a copy, and for that
// the processor waits until all that goes before is done.
func wordsOf6(addr netip.Addr) words {
	var b [16]byte
	_, _ = addr.WithZone("").AppendBinary(b[:0])
	return words{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (w words) bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], w.high)
	binary.BigEndian.PutUint64(b[8:], w.low)
	return b
}

// masked returns the first bits, and 0 for all others.
func (w words) masked(length int) words {
	if length < 64 {
		return words{high: w.high &^ (1<<(64-length) - 1)}
	}
	return words{w.high, w.low &^ (1<<(128-length) - 1)}
}

// narrowKey returns the bits before a narrow level, and those of the level.
func (w words) narrowKey(level int) (key uint64, own uint16) {
	if level == narrowLevels-1 {
		return w.high, uint16(w.low >> 48)
	}
	shift := 64 - levelBits*level // 64 makes a key of 0
	return w.high >> shift, uint16(w.high >> (shift - levelBits))
}

// wideKey returns the bits before a wide level, and those of the level.
func (w words) wideKey(level int) (key words, own uint16) {
	shift := 48 - levelBits*level
	return words{w.high, w.low >> shift}, uint16(w.low >> (shift - levelBits))
}

// contains asks the filters of all levels before it looks at a table. They do not depend on
// each other: so the processor waits for the memory of all of them at once. Then it begins with
// the longest prefixes, whose tables are the likeliest to have a filter.
func (f *family) contains(addr words) bool {
	if f.direct != nil {
		if key, own := addr.narrowKey(directLevel); f.direct.contains(uint16(key), own) {
			return true
		}
	}
	var hashes [allLevels]uint64
	candidates := uint8(0)
	for rest := f.levels; rest != 0; rest &= rest - 1 {
		level, mayHave := bits.TrailingZeros8(rest)%allLevels, false
		if level < narrowLevels {
			key, _ := addr.narrowKey(level)
			hashes[level] = f.seeds.narrowHash(key)
			mayHave = f.narrow[level].filter.mayHave(hashes[level])
		} else {
			key, _ := addr.wideKey(level - narrowLevels)
			hashes[level] = f.seeds.wideHash(key)
			mayHave = f.wide[level-narrowLevels].filter.mayHave(hashes[level])
		}
		if mayHave {
			candidates |= rest & -rest
		}
	}
	for candidates != 0 {
		level, found := (bits.Len8(candidates)-1)%allLevels, false
		candidates &^= 1 << level
		if level < narrowLevels {
			key, own := addr.narrowKey(level)
			found = f.narrow[level].contains(hashes[level], key, own)
		} else {
			key, own := addr.wideKey(level - narrowLevels)
			found = f.wide[level-narrowLevels].contains(hashes[level], key, own)
		}
		if found {
			return true
		}
	}
	return false
}

func (f *family) size() (bytes int64) {
	if f.direct != nil {
		bytes = f.direct.size()
	}
	for i := range f.narrow {
		bytes += f.narrow[i].size()
	}
	for i := range f.wide {
		bytes += f.wide[i].size()
	}
	return bytes
}

func (s *seeds) narrowHash(key uint64) uint64 { return mix(key^s.a, s.b) }

func (s *seeds) wideHash(key words) uint64 { return mix(key.high^mix(key.low^s.b, s.a), s.b) }

// mix returns both halves of a product, one over the other.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// familyBuilder collects the prefixes of a family.
type familyBuilder struct {
	narrow [narrowLevels]pieces[slot[uint64]]
	wide   [wideLevels]pieces[slot[words]]
}

// add adds the prefix of so many bits that an address begins with. Its other bits are 0.
func (b *familyBuilder) add(addr words, length int) {
	level := max(length-1, 0) / levelBits
	span := uint16(1<<(levelBits*(level+1)-length) - 1) // 0xffff for a length of 0
	if level < narrowLevels {
		key, own := addr.narrowKey(level)
		b.narrow[level].add(slot[uint64]{key: key, first: own, last: own | span, ranges: single})
		return
	}
	level -= narrowLevels
	key, own := addr.wideKey(level)
	b.wide[level].add(slot[words]{key: key, first: own, last: own | span, ranges: single})
}

// build returns the set, and leaves the builder empty.
func (b *familyBuilder) build(ctx context.Context) (f family, err error) {
	f.seeds = newSeeds()
	for i := range b.narrow {
		sorted, err := sortRanges(ctx, &b.narrow[i], cmp.Compare[uint64])
		if err != nil {
			return family{}, err
		}
		if i == directLevel && isLarge(sorted) {
			f.direct, err = newDirect(ctx, sorted)
		} else {
			f.narrow[i], err = tableOf(ctx, sorted, f.seeds.narrowHash)
		}
		if err != nil {
			return family{}, err
		}
		if len(f.narrow[i].slots) > 0 {
			f.levels |= 1 << i
		}
	}
	for i := range b.wide {
		sorted, err := sortRanges(ctx, &b.wide[i], compareWords)
		if err != nil {
			return family{}, err
		}
		if f.wide[i], err = tableOf(ctx, sorted, f.seeds.wideHash); err != nil {
			return family{}, err
		}
		if len(f.wide[i].slots) > 0 {
			f.levels |= 1 << (narrowLevels + i)
		}
	}
	return f, nil
}

func compareWords(a, b words) int {
	if c := cmp.Compare(a.high, b.high); c != 0 {
		return c
	}
	return cmp.Compare(a.low, b.low)
}
