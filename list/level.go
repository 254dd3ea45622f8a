package list

import (
	"context"
	"math/bits"
)

// level is the prefixes that end among the same 16 bits.
type level[K comparable] struct {
	ranges table[K]
	exact  set[K] // those that end with the last of these bits, if there are very many
}

func (l *level[K]) size() int64 { return l.ranges.size() + l.exact.size() }

// form is what narrow and wide levels do in different ways.
type form[K comparable] struct {
	hash func(K) uint64

	// join returns a key with a number behind it, without so many of the last bits.
	join func(key K, number uint16, without uint8) K
}

func narrowForm(s seeds) form[uint64] {
	return form[uint64]{s.narrowHash, func(key uint64, number uint16, without uint8) uint64 {
		return (key<<levelBits | uint64(number)) >> without
	}}
}

func wideForm(s seeds) form[words] {
	return form[words]{s.wideHash, func(key words, number uint16, without uint8) words {
		return words{key.high, key.low<<levelBits | uint64(number)}.without(without)
	}}
}

func (s *seeds) narrowHash(key uint64) uint64 { return mix(key^s.a, s.b) }

func (s *seeds) wideHash(key words) uint64 { return mix(key.high^mix(key.low^s.b, s.a), s.b) }

// mix returns both halves of a product, one over the other.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// levelOf makes a level of sorted ranges that do not touch. It changes them.
func levelOf[K comparable](ctx context.Context, sorted []slot[K], form form[K]) (l level[K], err error) {
	if sorted, err = l.takeExact(ctx, sorted, form); err == nil {
		l.ranges, err = tableOf(ctx, sorted, form)
	}
	return l, err
}

// takeExact puts single numbers into the set, if there are very many, and returns the other
// ranges. Keys with many ranges keep all of theirs: there a number takes less memory.
func (l *level[K]) takeExact(ctx context.Context, sorted []slot[K], form form[K]) (others []slot[K], err error) {
	count := 0
	for group := range groups(sorted) {
		count += exactIn(group)
	}
	if count < filterFrom {
		return sorted, nil
	}
	l.exact = newSet[K](count)
	others, done := sorted[:0], 0
	for group := range groups(sorted) {
		if done%checkEvery == 0 {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
		}
		done++
		hasExact := exactIn(group) > 0
		for _, r := range group {
			if hasExact && r.isExact() {
				number := form.join(r.key, r.first, 0)
				l.exact.add(form.hash(number), number)
			} else {
				others = append(others, r)
			}
		}
	}
	return others, nil
}

// exactIn returns how many ranges of a key are for the set.
func exactIn[K comparable](group []slot[K]) (count int) {
	if len(group) >= many {
		return 0
	}
	for i := range group {
		if group[i].isExact() {
			count++
		}
	}
	return count
}

// isExact says whether a range is one number, which a set can have.
func (s *slot[K]) isExact() bool {
	var zero slot[K]
	return s.first == s.last && (s.key != zero.key || s.first != 0)
}
