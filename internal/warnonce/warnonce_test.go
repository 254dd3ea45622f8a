package warnonce_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/warnonce"
)

func TestEachKeyIsFirstOnceInAWindow(t *testing.T) {
	const workers, keys = 8, 500
	var w warnonce.Windows
	for number := range int64(3) {
		var firsts [keys]atomic.Int64
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				for key := range uint64(keys) {
					if first, full := w.First(number, key); first {
						firsts[key].Add(1)
					} else {
						assert.False(t, full)
					}
				}
			})
		}
		group.Wait()
		for key := range firsts {
			assert.EqualValues(t, 1, firsts[key].Load())
		}
	}
	first, _ := w.First(1, keys+1)
	assert.False(t, first, "that window is over")
}

func TestKeysOfAWindowAreBounded(t *testing.T) {
	var w warnonce.Windows
	firsts, fulls := 0, 0
	for key := range uint64(10 * warnonce.MaxKeys) {
		first, full := w.First(7, key)
		if first {
			firsts++
		}
		if full {
			fulls++
		}
	}
	assert.Equal(t, warnonce.MaxKeys, firsts)
	assert.Equal(t, 1, fulls)
	assert.Zero(t, testing.AllocsPerRun(100, func() { w.First(7, 3) }))
}
