package parts_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/parts"
)

func TestPartsAreAllThereIsInOrder(t *testing.T) {
	t.Parallel()
	for _, count := range []int{0, 1, 255, 256, 511, 512, 513, 1000, 4096, 10_001} {
		var mu sync.Mutex
		var bounds [parts.Max][2]int
		ran := 0
		parts.Of(count, func(part, from, to int) {
			mu.Lock()
			defer mu.Unlock()
			bounds[part] = [2]int{from, to}
			ran++
		})
		require.LessOrEqual(t, ran, min(parts.Max, runtime.GOMAXPROCS(0)))
		end := 0
		for _, of := range bounds[:ran] {
			assert.Equal(t, end, of[0], "of %d", count)
			end = of[1]
		}
		assert.Equal(t, count, end)
		if count < 512 {
			assert.Equal(t, 1, ran, "too few of %d for two goroutines", count)
		}
	}
}
