package list

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFilterIsWrongAboutOneKeyOfAHundred(t *testing.T) {
	const keys = 2 * filterFrom
	r := rand.New(rand.NewPCG(1, 2))
	seeds := seeds{a: r.Uint64(), b: r.Uint64() | 1}
	for name, key := range map[string]func(i uint64) uint64{
		"one after the other": func(i uint64) uint64 { return i },
		"networks in a row":   func(i uint64) uint64 { return 0x2001_0db8_0000_0000 + i<<16 },
		"scattered":           func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 },
	} {
		f := newFilter(keys)
		for i := range uint64(keys) {
			f.add(seeds.narrowHash(key(i)))
		}
		wrong := 0
		for i := range uint64(keys) {
			require.True(t, f.mayHave(seeds.narrowHash(key(i))), name)
			if f.mayHave(seeds.narrowHash(key(keys + i))) {
				wrong++
			}
		}
		assert.Less(t, float64(wrong)/keys, .02, name)
		assert.Positive(t, wrong, name)
	}
}

func TestSmallTablesHaveNoFilter(t *testing.T) {
	f := newFilter(filterFrom - 1)
	f.add(1)
	assert.True(t, f.mayHave(1))
	assert.True(t, f.mayHave(2))
	assert.Zero(t, f.size())
}
