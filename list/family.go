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
// Very many prefixes of just 48 bits stand in a set instead. So a look-up takes one step or two
// for each level that has any prefixes, and there are two levels for IPv4 and eight for IPv6,
// however many prefixes there are. Of most it needs nothing but the filter.
type family struct {
	seeds seeds

	direct *direct                     // prefixes of 17 to 32 bits if there are many, else nil
	narrow [narrowLevels]level[uint64] // other prefixes of up to 64 bits
	wide   [wideLevels]level[words]    // longer ones

	sets, tables uint8 // a bit for each level that has one
}

const (
	levelBits    = 16
	narrowLevels = 4 // those whose prefixes fit in 64 bits
	wideLevels   = 4
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

// narrow returns the bits of an address up to the end of a narrow level.
func (w words) narrow(level int) uint64 { return w.high >> (48 - levelBits*level) }

// wide returns the bits of an address up to the end of a wide level.
func (w words) wide(level int) words {
	return words{w.high, w.low >> (48 - levelBits*(level-narrowLevels))}
}

// without returns all but so many of the last bits, at most 16.
func (w words) without(bits uint8) words { return words{w.high, w.low >> bits} }

// contains asks the sets and tables one after the other. Mostly a filter says that an address is
// not there, as the processor predicts: so it waits for the memory of several at once.
func (f *family) contains(addr words) bool {
	if f.direct != nil && f.direct.contains(uint16(addr.narrow(directLevel-1)), uint16(addr.narrow(directLevel))) {
		return true
	}
	for i, rest := 0, f.sets; rest != 0; rest &^= 1 << i {
		if i = bits.Len8(rest) - 1; f.hasExact(i, addr) {
			return true
		}
	}
	for i, rest := 0, f.tables; rest != 0; rest &^= 1 << i {
		if i = bits.Len8(rest) - 1; f.hasRange(i, addr) {
			return true
		}
	}
	return false
}

// hasExact says whether the set of a level has the beginning of an address.
func (f *family) hasExact(i int, addr words) bool {
	if i < narrowLevels {
		s, number := &f.narrow[i].exact, addr.narrow(i)
		hash := f.seeds.narrowHash(number)
		return s.filter.mayHave(hash) && hasNarrow(s, hash, number)
	}
	s, number := &f.wide[i-narrowLevels].exact, addr.wide(i)
	hash := f.seeds.wideHash(number)
	return s.filter.mayHave(hash) && hasWide(s, hash, number)
}

// hasRange says whether the table of a level has a range with the beginning of an address.
func (f *family) hasRange(i int, addr words) bool {
	if i < narrowLevels {
		t, number := &f.narrow[i].ranges, addr.narrow(i)
		key := number >> levelBits
		return t.filter.mayHave(f.seeds.narrowHash(number>>t.grain)) && t.contains(f.seeds.narrowHash(key), key, uint16(number))
	}
	t, number := &f.wide[i-narrowLevels].ranges, addr.wide(i)
	key := number.without(levelBits)
	return t.filter.mayHave(f.seeds.wideHash(number.without(t.grain))) && t.contains(f.seeds.wideHash(key), key, uint16(number.low))
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

// familyBuilder collects the prefixes of a family.
type familyBuilder struct {
	narrow [narrowLevels]pieces[slot[uint64]]
	wide   [wideLevels]pieces[slot[words]]
}

// add adds the prefix of so many bits that an address begins with. Its other bits are 0.
func (b *familyBuilder) add(addr words, length int) {
	i := max(length-1, 0) / levelBits
	span := uint16(1<<(levelBits*(i+1)-length) - 1) // 0xffff for a length of 0
	if i < narrowLevels {
		first := addr.narrow(i)
		b.narrow[i].add(slot[uint64]{key: first >> levelBits, first: uint16(first), last: uint16(first) | span, ranges: single})
		return
	}
	first := addr.wide(i)
	own := uint16(first.low)
	b.wide[i-narrowLevels].add(slot[words]{key: first.without(levelBits), first: own, last: own | span, ranges: single})
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
			f.narrow[i], err = levelOf(ctx, sorted, narrowForm(f.seeds))
		}
		if err != nil {
			return family{}, err
		}
		f.note(i, len(f.narrow[i].exact.groups), len(f.narrow[i].ranges.slots))
	}
	for i := range b.wide {
		sorted, err := sortRanges(ctx, &b.wide[i], compareWords)
		if err != nil {
			return family{}, err
		}
		if f.wide[i], err = levelOf(ctx, sorted, wideForm(f.seeds)); err != nil {
			return family{}, err
		}
		f.note(narrowLevels+i, len(f.wide[i].exact.groups), len(f.wide[i].ranges.slots))
	}
	return f, nil
}

// note notes whether a level has a set and a table.
func (f *family) note(level, set, table int) {
	if set > 0 {
		f.sets |= 1 << level
	}
	if table > 0 {
		f.tables |= 1 << level
	}
}

func compareWords(a, b words) int {
	if c := cmp.Compare(a.high, b.high); c != 0 {
		return c
	}
	return cmp.Compare(a.low, b.low)
}
