package leap_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

func TestHistogramLosesNoneOfManyWriters(t *testing.T) {
	t.Parallel()
	const writers, records = 32, 2000
	var h leap.Histogram
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

func TestHistogramCountsMoreThanFourThousandMillion(t *testing.T) {
	t.Parallel()
	const many = 1<<36 - 1
	var h leap.Histogram
	h.RecordMany(time.Millisecond, many)
	h.Record(time.Millisecond)
	d := h.Snapshot()
	assert.Equal(t, uint64(many+1), d.Count)
	assert.Len(t, d.Buckets, 1)
}
