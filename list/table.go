package list

import (
	"cmp"
	"context"
	"iter"
	"math/bits"
	"reflect"
	"slices"
)

// table has, for each key, the ranges of 16-bit numbers that belong to it. It is an open
// hash table, of which at most five slots of eight are used.
type table[K comparable] struct {
	slots []slot[K]

	// ranges are those of keys with more than one: how many bounds there are, and the
	// bounds, in ascending order: where a range begins, where it has ended, where the
	// next one begins, and so on. Of keys with very many it is [bitmap] and a bit for
	// each number.
	ranges []uint16
}

// slot is one key.
type slot[K comparable] struct {
	key         K
	first, last uint16 // of all of its numbers
	ranges      uint32 // unused, single, or 2 more than where its ranges stand
}

const (
	unused = 0
	single = 1 // first to last is the one range

	bitmap      = 0xffff
	bitmapWords = 1 << 16 / 16
)

// contains says whether a number belongs to a key.
func (t *table[K]) contains(key K, hash uint64, number uint16) bool {
	for at := t.home(hash); ; at++ {
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
		return s.ranges == single || t.isInRanges(s.ranges-2, number)
	}
}

// home returns the slot at which the search for a hash begins.
func (t *table[K]) home(hash uint64) int {
	at, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(at)
}

func (t *table[K]) isInRanges(at uint32, number uint16) bool {
	count := t.ranges[at]
	if count == bitmap {
		return t.ranges[at+1+uint32(number/16)]>>(number%16)&1 != 0
	}
	bounds := t.ranges[at+1 : at+1+uint32(count)]
	low, high := 0, len(bounds) // of the bounds, how many are not above the number
	for low < high {
		middle := int(uint(low+high) / 2)
		if bounds[middle] <= number {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low%2 != 0
}

func (t *table[K]) size() int64 {
	return int64(len(t.slots))*int64(reflect.TypeFor[slot[K]]().Size()) + 2*int64(len(t.ranges))
}

// newTable makes a table of ranges, each in a slot, and frees the pieces.
func newTable[K comparable](
	ctx context.Context, given *pieces[slot[K]], compare func(a, b K) int, hash func(K) uint64,
) (t table[K], err error) {
	sorted := given.join()
	if len(sorted) == 0 {
		return t, nil
	}
	if err := context.Cause(ctx); err != nil {
		return t, err
	}
	slices.SortFunc(sorted, func(a, b slot[K]) int {
		if c := compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.first, b.first)
	})
	if err := context.Cause(ctx); err != nil {
		return t, err
	}
	return tableOf(ctx, mergeRanges(sorted), hash)
}

// tableOf makes a table of sorted ranges that do not touch.
func tableOf[K comparable](ctx context.Context, sorted []slot[K], hash func(K) uint64) (t table[K], err error) {
	keys, words := 0, 0
	for group := range groups(sorted) {
		keys++
		words += wordsFor(len(group))
	}
	t.slots = make([]slot[K], slotsFor(keys))
	t.ranges = make([]uint16, 0, words)
	done := 0
	for group := range groups(sorted) {
		if done%checkEvery == 0 {
			if err := context.Cause(ctx); err != nil {
				return table[K]{}, err
			}
		}
		done++
		t.put(t.slotOf(group), hash(group[0].key))
	}
	return t, nil
}

// checkEvery is after how many entries the end of a context is looked for.
const checkEvery = 1 << 12

// slotsFor returns how many slots a table for so many keys has. One is free at least.
func slotsFor(keys int) int { return keys + keys*3/5 + 1 }

// mergeRanges returns sorted ranges without those that other ones of their keys contain
// or adjoin. It uses the memory of the given ones.
func mergeRanges[K comparable](sorted []slot[K]) []slot[K] {
	merged := sorted[:1]
	for _, next := range sorted[1:] {
		last := &merged[len(merged)-1]
		if next.key == last.key && int(next.first) <= int(last.last)+1 {
			last.last = max(last.last, next.last)
		} else {
			merged = append(merged, next)
		}
	}
	return merged
}

// groups yields the ranges of each key.
func groups[K comparable](sorted []slot[K]) iter.Seq[[]slot[K]] {
	return func(yield func([]slot[K]) bool) {
		for rest := sorted; len(rest) > 0; {
			count := 1
			for count < len(rest) && rest[count].key == rest[0].key {
				count++
			}
			if !yield(rest[:count]) {
				return
			}
			rest = rest[count:]
		}
	}
}

// wordsFor returns how much of [table.ranges] so many ranges take at the most.
func wordsFor(ranges int) int {
	if ranges == 1 {
		return 0 // the slot has it
	}
	return 1 + min(2*ranges, bitmapWords)
}

// slotOf returns the slot of a key with these ranges.
func (t *table[K]) slotOf(of []slot[K]) slot[K] {
	s := slot[K]{key: of[0].key, first: of[0].first, last: of[len(of)-1].last, ranges: single}
	if len(of) == 1 {
		return s
	}
	s.ranges = uint32(len(t.ranges)) + 2
	if 2*len(of) > bitmapWords {
		t.addBitmap(of)
		return s
	}
	t.ranges = append(t.ranges, 0)
	count := len(t.ranges) - 1
	for _, r := range of {
		t.ranges = append(t.ranges, r.first)
		if r.last != 0xffff { // else it never ends
			t.ranges = append(t.ranges, r.last+1)
		}
	}
	t.ranges[count] = uint16(len(t.ranges) - 1 - count)
	return s
}

func (t *table[K]) addBitmap(of []slot[K]) {
	t.ranges = append(t.ranges, bitmap)
	t.ranges = append(t.ranges, make([]uint16, bitmapWords)...)
	words := t.ranges[len(t.ranges)-bitmapWords:]
	for _, r := range of {
		for n := int(r.first); n <= int(r.last); n++ {
			words[n/16] |= 1 << (n % 16)
		}
	}
}

// put puts a key that the table does not have in a free slot.
func (t *table[K]) put(s slot[K], hash uint64) {
	at := t.home(hash)
	for t.slots[at].ranges != unused {
		if at++; at == len(t.slots) {
			at = 0
		}
	}
	t.slots[at] = s
}
