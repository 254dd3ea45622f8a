package list

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Numbers that all belong at the end of a set go on at its beginning.
func TestSetHasItsNumbersWhereverTheyBelong(t *testing.T) {
	t.Parallel()
	for name, hash := range map[string]func(number uint64) uint64{
		"spread":        func(number uint64) uint64 { return mix(number, 0x9e3779b97f4a7c15) },
		"at the start":  func(uint64) uint64 { return 0 },
		"at the end":    func(uint64) uint64 { return math.MaxUint64 },
		"in the middle": func(uint64) uint64 { return 1 << 63 },
	} {
		const count = 100
		narrow, wide := newSet[uint64](count), newSet[words](count)
		for i := range uint64(count) {
			number := i*i + 1
			narrow.add(hash(number), number)
			wide.add(hash(number), words{number, i})
		}
		for i := range uint64(count) {
			number := i*i + 1
			require.True(t, hasNarrow(&narrow, hash(number), number), "%s: %d", name, number)
			require.True(t, hasWide(&wide, hash(number), words{number, i}), "%s: %d", name, number)
			require.False(t, hasNarrow(&narrow, hash(number), number+2), "%s: %d", name, number+2)
			for _, other := range []words{{number, i + 1}, {number + 1, i}, {i, number}, {number, ^i}, {^number, i}} {
				require.False(t, hasWide(&wide, hash(number), other), "%s: %v", name, other)
			}
		}
		require.False(t, hasNarrow(&narrow, hash(0), 0), name)
		require.False(t, hasWide(&wide, hash(0), words{}), name)
	}
}

func TestIsZero(t *testing.T) {
	t.Parallel()
	assert.Equal(t, uint64(1), isZero(0))
	for _, x := range []uint64{1, 2, 1 << 63, math.MaxUint64, math.MaxUint64 >> 1, 1<<63 + 1} {
		assert.Zero(t, isZero(x), x)
	}
}
