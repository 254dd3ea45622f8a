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
// So a look-up takes one step or two for each level that has any prefixes, and there are two levels
// for IPv4 and eight for IPv6, however many prefixes there are. Of most it needs nothing but the
// filter. Very many prefixes of usual lengths stand in tables of other forms.
type family struct {
	seeds seeds

	direct *direct         // prefixes of 17 to 32 bits if there are many, else nil
	sites  *sites          // prefixes of 48 to 64 bits if there are very many, else nil
	exact  [wideLevels]set // those that end with a wide level, if there are very many

	narrow [narrowLevels]table[uint64] // other prefixes of up to 64 bits
	wide   [wideLevels]table[words]    // longer ones

	// A bit for each of these that has anything.
	sets, narrowTables, wideTables uint8
}

const (
	levelBits    = 16
	narrowLevels = 4 // those whose prefixes fit in 64 bits
	wideLevels   = 4
	directLevel  = 1 // whose keys have 16 bits

	veryMany = 1 << 16 // prefixes, for which there are tables of other forms
	perGroup = 2       // of the four places in their groups that are used, on average
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
	if addr.Zone() != "" {
		addr = addr.WithZone("")
	}
	var b [16]byte
	_, _ = addr.AppendBinary(b[:0])
	return words{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// mapped returns the IPv4 address that is mapped to an IPv6 address; false if there is none.
func (w words) mapped() (v4 words, ok bool) {
	return words{high: w.low << 32}, w.high == 0 && w.low>>32 == 0xffff
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
func (w words) narrow(level int) uint64 { return w.high >> behind(level) }

// wide returns the bits of an address up to the end of a wide level, of which 0 is the first.
func (w words) wide(level int) words { return words{w.high, w.low >> behind(level)} }

// behind returns how many of 64 bits stand behind those of a narrow or a wide level.
func behind(level int) int { return 48 - levelBits*level }

// contains asks the tables one after the other. Mostly a filter says that an address is not there,
// as the processor predicts: so it waits for the memory of several at once. The fewer instructions
// that takes, the more look-ups wait at the same time.
func (f *family) contains(addr words) bool {
	if f.direct != nil && f.direct.contains(uint16(addr.narrow(directLevel-1)), uint16(addr.narrow(directLevel))) {
		return true
	}
	if f.sites != nil && f.sites.has(addr.high) {
		return true
	}
	for rest := f.sets; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros8(rest) % wideLevels
		if number := addr.wide(i); f.exact[i].has(f.seeds.wideHash(number), number) {
			return true
		}
	}
	for rest := f.narrowTables; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros8(rest) % narrowLevels
		if t := &f.narrow[i]; t.filter.mayHave(f.seeds.narrowHash(addr.high>>(t.unseen&63))) && f.hasNarrow(i, addr) {
			return true
		}
	}
	for rest := f.wideTables; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros8(rest) % wideLevels
		if t := &f.wide[i]; t.filter.mayHave(f.seeds.wideHash(words{addr.high, addr.low >> (t.unseen & 63)})) && f.hasWide(i, addr) {
			return true
		}
	}
	return false
}

// hasNarrow says whether the table of a narrow level has a range with the beginning of an address.
func (f *family) hasNarrow(i int, addr words) bool {
	number := addr.narrow(i)
	key := number >> levelBits
	return f.narrow[i].contains(f.seeds.narrowHash(key), key, uint16(number))
}

// hasWide says whether the table of a wide level has one.
func (f *family) hasWide(i int, addr words) bool {
	number := addr.wide(i)
	key := words{number.high, number.low >> levelBits}
	return f.wide[i].contains(f.seeds.wideHash(key), key, uint16(number.low))
}

func (f *family) size() (bytes int64) {
	if f.direct != nil {
		bytes = f.direct.size()
	}
	bytes += f.sites.size()
	for i := range f.narrow {
		bytes += f.narrow[i].size()
	}
	for i := range f.wide {
		bytes += f.exact[i].size() + f.wide[i].size()
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
	first := addr.wide(i - narrowLevels)
	own := uint16(first.low)
	key := words{first.high, first.low >> levelBits}
	b.wide[i-narrowLevels].add(slot[words]{key: key, first: own, last: own | span, ranges: single})
}

// build returns the set, and leaves the builder empty.
func (b *familyBuilder) build(ctx context.Context) (f family, err error) {
	f.seeds = newSeeds()
	if err = f.buildNarrow(ctx, b); err == nil {
		err = f.buildWide(ctx, b)
	}
	if err != nil {
		return family{}, err
	}
	return f, nil
}

func (f *family) buildNarrow(ctx context.Context, b *familyBuilder) (err error) {
	var sorted [narrowLevels][]slot[uint64]
	for i := range b.narrow {
		if sorted[i], err = sortRanges(ctx, &b.narrow[i], cmp.Compare[uint64]); err != nil {
			return err
		}
	}
	if f.sites, err = takeSites(ctx, &sorted, f.seeds); err != nil {
		return err
	}
	for i := range sorted {
		ranges := sorted[i]
		sorted[i] = nil // its memory is needed for the next one
		if i == directLevel && isLarge(ranges) {
			f.direct, err = newDirect(ctx, ranges)
		} else {
			f.narrow[i], err = tableOf(ctx, ranges, narrowForm(f.seeds, i))
		}
		if err != nil {
			return err
		}
		if len(f.narrow[i].slots) > 0 {
			f.narrowTables |= 1 << i
		}
	}
	return nil
}

func (f *family) buildWide(ctx context.Context, b *familyBuilder) error {
	for i := range b.wide {
		sorted, err := sortRanges(ctx, &b.wide[i], compareWords)
		if err != nil {
			return err
		}
		if f.exact[i], sorted, err = takeExact(ctx, sorted, f.seeds); err != nil {
			return err
		}
		if f.wide[i], err = tableOf(ctx, sorted, wideForm(f.seeds, i)); err != nil {
			return err
		}
		if len(f.exact[i].groups) > 0 {
			f.sets |= 1 << i
		}
		if len(f.wide[i].slots) > 0 {
			f.wideTables |= 1 << i
		}
	}
	return nil
}

func compareWords(a, b words) int {
	if c := cmp.Compare(a.high, b.high); c != 0 {
		return c
	}
	return cmp.Compare(a.low, b.low)
}
