package list

import (
	"context"
	"math"
)

// direct has the ranges of 16-bit numbers for keys of 16 bits: it is the table of many IPv4
// prefixes. It finds the ranges of a key by the key itself, in a sixth of the memory of slots:
// more of it is in the caches of a processor.
type direct struct {
	places []uint32 // of each key: where its words begin, which is where those of the key before end
	words  []uint16 // bounds or bits, as in a table
}

// directFrom is for how many keys a table of slots would be larger than this one.
const directFrom = bits16 / 6

// isLarge says whether sorted ranges have so many keys that a direct table is the smaller one.
func isLarge(sorted []slot[uint64]) bool {
	keys := 0
	for range groups(sorted) {
		keys++
	}
	return keys >= directFrom
}

// newDirect makes a table of sorted ranges that do not touch.
func newDirect(ctx context.Context, sorted []slot[uint64]) (*direct, error) {
	words := 0
	for group := range groups(sorted) {
		words += min(2*len(group), bitWords)
	}
	d := &direct{places: make([]uint32, bits16+1), words: make([]uint16, 0, words)}
	next := 0 // key whose place is not known yet
	for group := range groups(sorted) {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		for ; next <= int(group[0].key); next++ {
			d.places[next] = uint32(len(d.words))
		}
		if 2*len(group) < bitWords {
			d.words = appendBounds(d.words, group)
		} else {
			d.words = appendBits(d.words, group)
		}
	}
	for ; next < len(d.places); next++ {
		d.places[next] = uint32(len(d.words))
	}
	return d, nil
}

// contains says whether a number belongs to a key.
func (d *direct) contains(key, number uint16) bool {
	switch words := d.words[d.places[key]:d.places[int(key)+1]]; len(words) {
	case 0:
		return false
	case bitWords:
		return isBitSet(words, number)
	default:
		return isInBounds(words, number, 0, math.MaxUint16)
	}
}

func (d *direct) size() int64 { return 4*int64(len(d.places)) + 2*int64(cap(d.words)) }
