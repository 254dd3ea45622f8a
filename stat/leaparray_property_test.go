package stat_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/stat"
)

// ledger is every bucket there ever was, and what belongs into it.
type ledger struct {
	counts map[int64]uint64
	maxima map[int64]uint64
	total  uint64
	last   int64 // the latest bucket
}

func (l *ledger) remembers(bucket int64) bool {
	return bucket > l.last-stat.Remembered && bucket <= l.last
}

// mistakes returns the buckets of which the array does not tell what it should:
// what was counted, or, of a bucket that it need not remember, any more.
func (l *ledger) mistakes(array *stat.LeapArray, want map[int64]uint64) (buckets []int64) {
	for b := l.last - 150; b <= l.last+64; b++ {
		got := array.Get(b)
		if got > want[b] || got < want[b] && l.remembers(b) {
			buckets = append(buckets, b)
		}
	}
	return buckets
}

func TestLeapArrayBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const lapsWrapAt = 1 << 30
		var counts, maxima stat.LeapArray
		l := ledger{counts: map[int64]uint64{}, maxima: map[int64]uint64{}}
		l.last = rapid.SampledFrom([]int64{100, -100, 1_700_000_000, lapsWrapAt - 150, -lapsWrapAt}).Draw(t, "start")
		add := func(bucket int64, n uint64) {
			counts.Add(bucket, n)
			maxima.Raise(bucket, n)
			l.last = max(l.last, bucket)
			l.counts[bucket] += n
			l.maxima[bucket] = max(l.maxima[bucket], n)
			l.total += n
		}
		amount := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64Range(0, 1<<30))
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				add(l.last, amount.Draw(t, "n"))
			},
			"add late": func(t *rapid.T) {
				add(l.last-rapid.Int64Range(1, 150).Draw(t, "late by"), amount.Draw(t, "n"))
			},
			"move on": func(t *rapid.T) {
				step := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(55, 70), rapid.Int64Range(1, 300))
				add(l.last+step.Draw(t, "by"), amount.Draw(t, "n"))
			},
			"": func(t *rapid.T) {
				assert.Equal(t, l.total, counts.Total())
				assert.Empty(t, l.mistakes(&counts, l.counts), "counts")
				assert.Empty(t, l.mistakes(&maxima, l.maxima), "maxima")
			},
		})
	})
}
