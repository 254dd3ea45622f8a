package list

import (
	"cmp"
	"context"
	"iter"
	"slices"
)

// Ranges of numbers stand in slots, one each, and are sorted by their keys, before tables are made
// of them.

// sortRanges sorts ranges, each in a slot, joins those that touch, and frees the pieces.
func sortRanges[K comparable](
	ctx context.Context, given *pieces[slot[K]], compare func(a, b K) int,
) ([]slot[K], error) {
	sorted := given.join()
	if len(sorted) == 0 {
		return nil, nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(sorted, func(a, b slot[K]) int {
		if c := compare(a.key, b.key); c != 0 {
			return c
		}
		return cmp.Compare(a.first, b.first)
	})
	return mergeRanges(sorted), context.Cause(ctx)
}

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

// take returns the sorted ranges that a function does not take, which is told how many their keys
// have. It uses their memory.
func take[K comparable](
	ctx context.Context, sorted []slot[K], takes func(ofKey int, r slot[K]) bool,
) (others []slot[K], err error) {
	others, done := sorted[:0], 0
	for group := range groups(sorted) {
		if done%checkEvery == 0 {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
		}
		done++
		for _, r := range group {
			if !takes(len(group), r) {
				others = append(others, r)
			}
		}
	}
	return others, nil
}

// checkEvery is after how many entries the end of a context is looked for.
const checkEvery = 1 << 12
