package list

import (
	"context"
	"reflect"
	"slices"
)

// set has very many numbers of a wide level, but not 0, which stands for a place that is not used.
// It is a hash table, of which every second place is used. A look-up mostly reads one group of
// places, which is a cache line.
type set struct {
	filter filter
	groups []setGroup
}

type setGroup [4]words

func newSet(count int) set { return set{newFilter(count), make([]setGroup, count/perGroup+1)} }

// takeExact puts ranges of one number each into a set, if there are very many, and returns the
// other ranges. It uses their memory.
func takeExact(ctx context.Context, sorted []slot[words], seeds seeds) (s set, others []slot[words], err error) {
	count := 0
	for group := range groups(sorted) {
		for _, r := range group {
			if isExact(len(group), r) {
				count++
			}
		}
	}
	if count < veryMany {
		return set{}, sorted, nil
	}
	s = newSet(count)
	others, err = take(ctx, sorted, func(ofKey int, r slot[words]) bool {
		if !isExact(ofKey, r) {
			return false
		}
		number := words{r.key.high, r.key.low<<levelBits | uint64(r.first)}
		s.add(seeds.wideHash(number), number)
		return true
	})
	return s, others, err
}

// isExact says whether a range, one of so many of its key, is one number that a set can have. Keys
// with many ranges keep all of theirs: there a number takes less memory.
func isExact(ofKey int, r slot[words]) bool {
	return ofKey < many && r.first == r.last && (r.key != words{} || r.first != 0)
}

// add adds a number that the set does not have. There must be space for it.
func (s *set) add(hash uint64, number words) {
	s.filter.add(hash)
	for at := homeOf(hash, len(s.groups)); ; at++ {
		if at == len(s.groups) {
			at = 0
		}
		group := &s.groups[at]
		if i := slices.Index(group[:], words{}); i >= 0 {
			group[i] = number
			return
		}
	}
}

// has says whether the set has a number. It compares with all places of a group without a branch:
// which one the number has, a processor could not predict.
func (s *set) has(hash uint64, number words) bool {
	if !s.filter.mayHave(hash) {
		return false
	}
	for at := homeOf(hash, len(s.groups)); ; at++ {
		if at == len(s.groups) {
			at = 0
		}
		g := &s.groups[at]
		if isSame(g[0], number)|isSame(g[1], number)|isSame(g[2], number)|isSame(g[3], number) != 0 {
			return number != words{}
		}
		if g[len(g)-1] == (words{}) {
			return false
		}
	}
}

// isSame returns 1 if both are the same, else 0.
func isSame(a, b words) uint64 {
	differs := (a.high ^ b.high) | (a.low ^ b.low)
	return (differs - 1) &^ differs >> 63
}

func (s *set) size() int64 {
	return s.filter.size() + int64(len(s.groups))*int64(reflect.TypeFor[setGroup]().Size())
}
