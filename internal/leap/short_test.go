package leap_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/leap"
)

func TestShortResponseTimesAddUp(t *testing.T) {
	t.Parallel()
	const callers, calls, took = 4, 250_000, 499
	var n leap.Node
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for range calls {
				n.Pass(epoch, 1)
				n.Done(epoch, epoch.Add(took), false)
				n.EndWait(epoch, epoch.Add(took))
			}
		})
	}
	calling.Wait()
	totals := n.Totals()
	assert.Equal(t, callers*calls*took*time.Nanosecond, totals.ResponseTime)
	assert.Equal(t, callers*calls*took*time.Nanosecond, totals.WaitTime)
	second := n.Second(epoch.Time().Unix())
	assert.Equal(t, callers*calls*took*time.Nanosecond, second.ResponseTime)
	assert.EqualValues(t, took, second.MaxResponseTime)
	assert.InEpsilon(t, took, totals.ResponseTimes.Quantile(0.5), 0.032)
}

// Sums are exact whatever is summed, be it in the second that is open or late.
func TestSumsAreExactToTheNanosecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var n leap.Node
		var sum time.Duration
		longest := map[int64]time.Duration{}
		now := epoch
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			took := time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 46).Draw(t, "bits")).Draw(t, "took"))
			now = now.Add(time.Duration(rapid.Int64Range(-2e8, 3e8).Draw(t, "step")))
			n.Pass(now, 1)
			n.Done(now.Add(-took), now, false)
			sum += took
			second := now.Time().Unix()
			longest[second] = max(longest[second], took)
		}
		if got := n.Totals().ResponseTime; got != sum {
			t.Fatalf("the sum is %v, not %v", got, sum)
		}
		var seconds time.Duration
		for second, most := range longest {
			s := n.Second(second)
			seconds += s.ResponseTime
			if s.MaxResponseTime > most {
				t.Fatalf("the longest is %v, not %v", s.MaxResponseTime, most)
			}
		}
		if seconds != sum {
			t.Fatalf("the seconds add up to %v, not %v", seconds, sum)
		}
	})
}

func TestLongestResponseTimeOfWeeksIsKept(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, took := range []time.Duration{1, 26 * day, 27*day + 1, 60 * day, 40 * 365 * day} {
		var n leap.Node
		n.Pass(epoch, 1)
		n.Done(epoch.Add(-took), epoch, false)
		s := n.Second(epoch.Time().Unix())
		assert.Equal(t, took, s.ResponseTime)
		assert.InDelta(t, float64(took), float64(s.MaxResponseTime), 4096)
		if took <= 26*day {
			assert.Equal(t, took, s.MaxResponseTime)
		}
	}
}

func TestQuantilesOfShortResponseTimesAreRight(t *testing.T) {
	t.Parallel()
	for d := range time.Duration(5000) {
		got := record([]time.Duration{d}).Quantile(0.5)
		assert.LessOrEqual(t, math.Abs(float64(got-d)), max(0.5, 0.032*float64(d)), "of %v: %v", d, got)
	}
}
