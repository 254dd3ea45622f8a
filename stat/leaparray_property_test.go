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
				for b := l.last - 150; b <= l.last+64; b++ {
					if l.remembers(b) {
						assert.Equal(t, l.counts[b], counts.Get(b), "count of %d, last %d", b, l.last)
						assert.Equal(t, l.maxima[b], maxima.Get(b), "maximum of %d, last %d", b, l.last)
						continue
					}
					assert.LessOrEqual(t, counts.Get(b), l.counts[b], "count of %d, last %d", b, l.last)
					assert.LessOrEqual(t, maxima.Get(b), l.maxima[b], "maximum of %d, last %d", b, l.last)
				}
			},
		})
	})
}
