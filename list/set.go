package list

import (
	"reflect"
	"slices"
)

// set is a large set of numbers other than 0, which stands for a place that is not used. It is
// a hash table of nothing but the numbers, of which three places of four are used: the more of
// it is in the caches of a processor, the fewer look-ups wait for memory. A look-up mostly reads
// one group of places, and compares with all of it without a branch: which place the number has,
// a processor could not predict.
type set[K comparable] struct {
	filter filter
	groups []setGroup[K]
}

type setGroup[K comparable] [8]K

func newSet[K comparable](count int) set[K] {
	const size = len(setGroup[K]{})
	return set[K]{newFilter(count), make([]setGroup[K], (count+count/3)/size+1)}
}

// add adds a number that the set does not have. There must be space for it.
func (s *set[K]) add(hash uint64, number K) {
	var unused K
	s.filter.add(hash)
	for at := homeOf(hash, len(s.groups)); ; at++ {
		if at == len(s.groups) {
			at = 0
		}
		group := &s.groups[at]
		if i := slices.Index(group[:], unused); i >= 0 {
			group[i] = number
			return
		}
	}
}

func (s *set[K]) size() int64 {
	return s.filter.size() + int64(len(s.groups))*int64(reflect.TypeFor[setGroup[K]]().Size())
}

// hasNarrow says whether a set of the numbers of a narrow level has one.
func hasNarrow(s *set[uint64], hash, number uint64) bool {
	for at := homeOf(hash, len(s.groups)); ; at++ {
		if at == len(s.groups) {
			at = 0
		}
		group, equal := &s.groups[at], uint64(0)
		for i := range group {
			equal |= isZero(group[i] ^ number)
		}
		if equal != 0 {
			return number != 0
		}
		if group[len(group)-1] == 0 {
			return false
		}
	}
}

// hasWide says whether a set of the numbers of a wide level has one.
func hasWide(s *set[words], hash uint64, number words) bool {
	for at := homeOf(hash, len(s.groups)); ; at++ {
		if at == len(s.groups) {
			at = 0
		}
		group, equal := &s.groups[at], uint64(0)
		for i := range group {
			equal |= isZero((group[i].high ^ number.high) | (group[i].low ^ number.low))
		}
		if equal != 0 {
			return number != words{}
		}
		if group[len(group)-1] == (words{}) {
			return false
		}
	}
}

// isZero returns 1 if x is 0, and 0 if it is not.
func isZero(x uint64) uint64 { return (x - 1) &^ x >> 63 }
