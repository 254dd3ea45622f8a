package list

import (
	"context"
	"math"
	"math/bits"
	"reflect"
)

// table has, for each key, the ranges of 16-bit numbers that belong to it. It is an open
// hash table, of which at most five slots of eight are used.
type table[K comparable] struct {
	filter filter // of the keys, each with the first bits of its numbers
	unseen uint8  // how many of the last of 64 bits of an address the filter does not have
	slots  []slot[K]

	// words has the ranges of keys with more than one, as their bounds in ascending
	// order: where a range begins, where it has ended, where the next one begins, and so
	// on. Of keys with very many it has a bit for each number.
	words []uint16
}

// slot is one key.
type slot[K comparable] struct {
	key         K
	first, last uint16 // of all of its numbers
	ranges      ranges
}

// ranges says how many ranges a key has, and where in the words of the table they stand
// if there are several. Up to 126 are counted here, so that they are found at once.
type ranges uint32

const (
	unused   ranges = 0
	single   ranges = 1           // first to last is the one range
	many            = 1<<7 - 1    // the word at the place says how many bounds there are, or bitmap
	bitmap          = 0xffff      // bits follow
	bits16          = 1 << 16     // how many
	bitWords        = bits16 / 16 // in so many words
)

func (r ranges) count() int { return int(r & many) }
func (r ranges) place() int { return int(r >> 7) }

// contains says whether a number belongs to a key.
func (t *table[K]) contains(hash uint64, key K, number uint16) bool {
	for at := homeOf(hash, len(t.slots)); ; at++ {
		if at == len(t.slots) {
			at = 0
		}
		s := &t.slots[at]
		if s.ranges == unused {
			return false
		}
		if s.key != key {
			continue
		}
		if number < s.first || number > s.last {
			return false
		}
		return s.ranges == single || t.isInRanges(s, number)
	}
}

// homeOf returns the slot, of so many, at which the search for a hash begins.
func homeOf(hash uint64, slots int) int {
	at, _ := bits.Mul64(hash, uint64(slots))
	return int(at)
}

func (t *table[K]) isInRanges(s *slot[K], number uint16) bool {
	place, count := s.ranges.place(), 2*s.ranges.count()
	if s.last == math.MaxUint16 {
		count-- // the last range has no end
	}
	if s.ranges.count() == many {
		count = int(t.words[place])
		place++
	}
	if count == bitmap {
		return isBitSet(t.words[place:], number)
	}
	return isInBounds(t.words[place:place+count], number, s.first, s.last)
}

// isInBounds says whether a number is in the ranges with these bounds, of which there are some.
// It looks first where the number stands if the ranges are spread evenly from first to last.
func isInBounds(bounds []uint16, number, first, last uint16) bool {
	from, to := window(uint32(len(bounds)), uint32(number-first), uint32(last-first))
	if bounds[from] <= number && number < bounds[to] {
		return (from+boundsUpTo(bounds[from:to], number))%2 != 0
	}
	return boundsUpTo(bounds, number)%2 != 0
}

// window returns where, among so many bounds, the number at an offset stands if the
// bounds are spread evenly: within about two cache lines.
func window(count, offset, last uint32) (from, to int) {
	const half = 24
	guess := int(offset * count / (last + 1))
	return max(guess-half, 0), min(guess+half, int(count)-1)
}

// boundsUpTo returns how many of the bounds are not above the number. If that is odd it
// is in a range, which has begun and not ended.
func boundsUpTo(bounds []uint16, number uint16) int {
	count := 0
	for left := len(bounds); left > 0; {
		half := (left + 1) / 2
		if bounds[count+half-1] <= number {
			count += half
		}
		left -= half
	}
	return count
}

func (t *table[K]) size() int64 {
	return t.filter.size() + int64(len(t.slots))*int64(reflect.TypeFor[slot[K]]().Size()) + 2*int64(cap(t.words))
}

// tableOf makes a table of sorted ranges that do not touch.
func tableOf[K comparable](ctx context.Context, sorted []slot[K], form form[K]) (t table[K], err error) {
	if len(sorted) == 0 {
		return t, nil
	}
	keys, words := 0, 0
	for group := range groups(sorted) {
		keys++
		words += wordsFor(len(group))
	}
	grain, grains := grainOf(sorted, keys)
	t.filter, t.unseen = newFilter(grains), grain+uint8(form.behind)
	t.slots = make([]slot[K], slotsFor(keys))
	t.words = make([]uint16, 0, words)
	done := 0
	for group := range groups(sorted) {
		if done%checkEvery == 0 {
			if err := context.Cause(ctx); err != nil {
				return table[K]{}, err
			}
		}
		done++
		t.put(t.slotOf(group), form.hash(group[0].key))
		if grains < filterFrom {
			continue
		}
		for _, r := range group {
			for n := int(r.first) >> grain << grain; n <= int(r.last); n += 1 << grain {
				t.filter.add(form.hash(form.join(r.key, uint16(n), grain)))
			}
		}
	}
	return t, nil
}

// grainOf returns how many of the last bits of the numbers the filter of a table leaves out, and
// about how many keys, each with the other bits, it then has. The fewer bits it leaves out, the
// more of what is not in the table it recognises: it is the fewest with which there are at most
// two of them for each range.
func grainOf[K comparable](sorted []slot[K], keys int) (grain uint8, count int) {
	for grain = 4; grain < levelBits; grain += 4 {
		count = 0
		for i := range sorted {
			count += int(sorted[i].last>>grain-sorted[i].first>>grain) + 1
		}
		if count <= 2*len(sorted) {
			return grain, count
		}
	}
	return levelBits, keys
}

// slotsFor returns how many slots a table for so many keys has. One is free at least.
func slotsFor(keys int) int { return keys + keys*3/5 + 1 }

// wordsFor returns how many words so many ranges take at the most.
func wordsFor(ranges int) int {
	switch {
	case ranges == 1:
		return 0 // the slot has it
	case ranges < many:
		return 2 * ranges
	}
	return 1 + min(2*ranges, bitWords)
}

// slotOf returns the slot of a key with these ranges.
func (t *table[K]) slotOf(of []slot[K]) slot[K] {
	s := slot[K]{key: of[0].key, first: of[0].first, last: of[len(of)-1].last, ranges: single}
	if len(of) == 1 {
		return s
	}
	s.ranges = ranges(len(t.words)<<7 | min(len(of), many))
	switch {
	case len(of) < many:
		t.words = appendBounds(t.words, of)
	case 2*len(of) <= bitWords:
		at := len(t.words)
		t.words = append(t.words, 0)
		t.words = appendBounds(t.words, of)
		t.words[at] = uint16(len(t.words) - at - 1)
	default:
		t.words = append(t.words, bitmap)
		t.words = appendBits(t.words, of)
	}
	return s
}

// appendBounds appends the bounds of ranges.
func appendBounds[K comparable](words []uint16, of []slot[K]) []uint16 {
	for _, r := range of {
		words = append(words, r.first)
		if r.last != math.MaxUint16 {
			words = append(words, r.last+1)
		}
	}
	return words
}

// appendBits appends a bit for each number.
func appendBits[K comparable](words []uint16, of []slot[K]) []uint16 {
	words = append(words, make([]uint16, bitWords)...)
	numbers := words[len(words)-bitWords:]
	for _, r := range of {
		for n := int(r.first); n <= int(r.last); n++ {
			numbers[n/16] |= 1 << (n % 16)
		}
	}
	return words
}

// isBitSet says whether the bit of a number is set.
func isBitSet(words []uint16, number uint16) bool { return words[number/16]>>(number%16)&1 != 0 }

// put puts a key that the table does not have in a free slot.
func (t *table[K]) put(s slot[K], hash uint64) {
	at := homeOf(hash, len(t.slots))
	for t.slots[at].ranges != unused {
		if at++; at == len(t.slots) {
			at = 0
		}
	}
	t.slots[at] = s
}
