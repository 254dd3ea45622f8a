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
		s := newSet(count)
		for i := range uint64(count) {
			number := i*i + 1
			s.add(hash(number), words{number, i})
		}
		for i := range uint64(count) {
			number := i*i + 1
			require.True(t, s.has(hash(number), words{number, i}), "%s: %d", name, number)
			for _, other := range []words{{number, i + 1}, {number + 1, i}, {i, number}, {number, ^i}, {^number, i}} {
				require.False(t, s.has(hash(number), other), "%s: %v", name, other)
			}
		}
		require.False(t, s.has(hash(0), words{}), name)
	}
}

func TestIsSame(t *testing.T) {
	t.Parallel()
	for _, x := range []uint64{0, 1, 2, 1 << 63, math.MaxUint64, math.MaxUint64 >> 1, 1<<63 + 1} {
		for _, y := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
			assert.Equal(t, uint64(1), isSame(words{x, y}, words{x, y}))
			assert.Zero(t, isSame(words{x, y}, words{x ^ 1, y}))
			assert.Zero(t, isSame(words{x, y}, words{x, y ^ 1<<63}))
			assert.Zero(t, isSame(words{x, y}, words{^x, ^y}))
		}
	}
}
