package adaptive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func TestLessImportantCallsKeepTheirQuota(t *testing.T) {
	t.Parallel()
	now := testEpoch
	w := newSecondWindow(20, now)
	w.reserveFor(4, 2) // 20 − 2 · (4 + 2·√4 + 1) = 2
	now = now.Add(time.Second)
	take := func(important bool) rule.Decision {
		_, decision := w.take(now, 1, important)
		return decision
	}
	ticket, decision := w.take(now, 1, false)
	assert.Equal(t, rule.Pass, decision)
	assert.Equal(t, rule.Pass, take(false))
	assert.Equal(t, rule.Block, take(false))
	w.giveBack(now, ticket, 1)
	assert.Equal(t, rule.Pass, take(false), "what was given back is of the quota, too")

	taken := now
	now = now.Add(300 * time.Millisecond)
	for range 18 {
		assert.Equal(t, rule.Pass, take(true))
	}
	assert.Equal(t, rule.Block, take(true), "the limit holds for all")
	w.giveBack(taken, countedLesser, 1)
	assert.Equal(t, rule.Pass, take(false), "so is what was taken in an earlier bucket")
	assert.Equal(t, rule.Block, take(false))

	w.reserveFor(0, 1)
	now = now.Add(time.Second)
	for range 20 {
		assert.Equal(t, rule.Pass, take(false), "there are no others")
	}
	assert.Equal(t, rule.Block, take(false))
}

// In no second more passes than the whole number above the limit.
func TestLimitWithAFractionHasWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, qps := range []float64{1, 2.5, 7.75, 1e9} {
		w := newSecondWindow(qps, testEpoch)
		sum := int64(0)
		for second := range 1000 {
			bucket := qpsBucketOf(testEpoch.Add(time.Duration(second) * time.Second))
			limit := w.limit(bucket)
			assert.GreaterOrEqual(t, limit, int64(math.Floor(qps)))
			assert.LessOrEqual(t, limit, int64(math.Ceil(qps)))
			assert.Equal(t, limit, w.limit(bucket+qpsBuckets-1))
			sum += limit
		}
		assert.InDelta(t, 1000*qps, sum, 1)
	}
	w := newSecondWindow(2.5, testEpoch)
	assert.Positive(t, w.limit(qpsBucketOf(clock.Instant(-1))), "before the epoch")
}

// By hand, of Erlang's formula: with 10 of 20, fewer are under way 2, 2·1.9, 2·1.9·1.8 … times
// as often as 20.
func TestReserveIsWhatImportantCallsNeed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit     uint32
		important float64
		reserve   uint32
	}{
		{20, 0, 0}, {20, 10, 8}, {100, 1, 2}, {100, 50, 7}, {8, 6, 4}, {1, 0.5, 0}, {2, 1, 1}, {20, math.Inf(1), 10}, {math.MaxUint32 - 1, 5, 1},
	} {
		assert.Equal(t, c.reserve, reserveFor(c.limit, c.important), "%v of %v", c.important, c.limit)
	}
}
