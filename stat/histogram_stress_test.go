package stat_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/stat"
)

func TestHistogramLosesNoneOfManyWriters(t *testing.T) {
	t.Parallel()
	const writers, records = 32, 2000
	var h stat.Histogram
	var done atomic.Bool
	var writing, reading sync.WaitGroup
	shrank := 0
	reading.Go(func() {
		var last stat.Distribution
		for !done.Load() {
			next := h.Snapshot()
			if since := next.Since(last); since.Count != next.Count-last.Count {
				shrank++
			}
			last = next
		}
	})
	for w := range writers {
		writing.Go(func() {
			for i := range records {
				h.Record(time.Microsecond << ((w + i) % 30))
			}
		})
	}
	writing.Wait()
	done.Store(true)
	reading.Wait()

	d := h.Snapshot()
	assert.Zero(t, shrank, "buckets that went down")
	assert.Equal(t, uint64(writers*records), d.Count)
	assert.Len(t, d.Buckets, 30)
	for _, b := range d.Buckets {
		assert.InDelta(t, writers*records/30, b.Count, writers, "%v", b.Low)
	}
}

// What is carried out of a counter is neither lost nor counted twice, nor missing
// while it is.
func TestHistogramCarriesWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	const writers, records, carries = 16, 500, 40
	var h stat.Histogram
	var done atomic.Bool
	var reading sync.WaitGroup
	shrank := 0
	reading.Go(func() {
		for last := uint64(0); !done.Load(); {
			next := h.Snapshot().Count
			if next < last {
				shrank++
			}
			last = next
		}
	})
	want := uint64(0)
	for range carries {
		// Each time the counter stops short of what is carried, and all step over it.
		few := uint64(writers * records / 2)
		skipped := stat.CarryAt - want%stat.CarryAt - few
		h.RecordMany(time.Millisecond, uint32(skipped))
		var writing sync.WaitGroup
		for range writers {
			writing.Go(func() {
				for range records {
					h.Record(time.Millisecond)
				}
			})
		}
		writing.Wait()
		want += skipped + writers*records
		assert.Equal(t, want, h.Snapshot().Count)
	}
	done.Store(true)
	reading.Wait()
	assert.Zero(t, shrank, "counts that went down")
	assert.Greater(t, want, uint64(1<<36))
	assert.Len(t, h.Snapshot().Buckets, 1)
}
