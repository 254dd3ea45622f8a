package warnonce_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
					if first, full := w.First(warnonce.Window{Length: time.Hour, Number: number}, key); first {
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
	first, _ := w.First(warnonce.Window{Length: time.Hour, Number: 1}, keys+1)
	assert.False(t, first, "that window is over")
}

func TestKeysOfAWindowAreBounded(t *testing.T) {
	var w warnonce.Windows
	firsts, fulls := 0, 0
	for key := range uint64(10 * warnonce.MaxKeys) {
		first, full := w.First(warnonce.Window{Number: 7}, key)
		if first {
			firsts++
		}
		if full {
			fulls++
		}
	}
	assert.Equal(t, warnonce.MaxKeys, firsts)
	assert.Equal(t, 1, fulls)
	assert.Zero(t, testing.AllocsPerRun(100, func() { w.First(warnonce.Window{Number: 7}, 3) }))
}

func TestWindowIsFirstOnce(t *testing.T) {
	var l warnonce.Latest
	minute, hour := warnonce.Window{Length: time.Minute, Number: 900}, warnonce.Window{Length: time.Hour, Number: 15}
	var firsts atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if l.First(minute) {
					firsts.Add(1)
				}
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 1, firsts.Load())
	assert.False(t, l.First(warnonce.Window{Length: time.Minute, Number: 899}), "that window is over")
	assert.True(t, l.First(hour), "of a changed rule, whose numbers are others")
	assert.False(t, l.First(hour))
	assert.Zero(t, testing.AllocsPerRun(100, func() { l.First(hour) }))
}
