package adaptive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

const (
	testEpoch = clock.Instant(1_700_000_000 * int64(time.Second))
	ms        = time.Millisecond
)

// stretch is an interval in which calls ended.
type stretch struct {
	length time.Duration
	calls  float64
	took   time.Duration // on average
	failed float64       // of the calls; they count
}

func (s stretch) interval() *interval {
	return &interval{length: s.length, counted: s.calls, good: s.calls - s.failed, took: s.calls * float64(s.took)}
}

// Highest throughput times lowest mean response time, plus one.
func TestCapacityIsHighestRateTimesLowestResponseTime(t *testing.T) {
	t.Parallel()
	usual := stretch{length: 100 * ms, calls: 80, took: 12 * ms}
	for _, c := range []struct {
		name      string
		stretches []stretch
		limit     float64
		known     bool
	}{
		{"nothing has ended", []stretch{{length: time.Second}}, 0, false},
		{"one bucket", []stretch{usual}, 11, true},                                                                      // 800/s × 12 ms = 9.6
		{"each from another bucket", []stretch{usual, {100 * ms, 100, 20 * ms, 0}, {100 * ms, 40, 8 * ms, 0}}, 9, true}, // 1000/s × 8 ms = 8
		{"response times below a millisecond", []stretch{{100 * ms, 2000, 300 * time.Microsecond, 0}}, 7, true},         // 20000/s × 0.3 ms = 6
		{"stretches without calls", []stretch{usual, {length: 3 * time.Second}, {length: 2 * time.Second}}, 11, true},
		{"too few calls for a bucket are counted together", []stretch{
			{100 * ms, 20, 4 * ms, 0}, {100 * ms, 20, 12 * ms, 0}, // 200/s × 8 ms = 1.6
		}, 3, true},
		{"rare calls", []stretch{{time.Second, 1, 3 * time.Second, 0}}, 4, true},
		{"older than ten seconds", []stretch{{100 * ms, 1000, ms, 0}, {length: 9 * time.Second}, usual, {time.Second, 40, 20 * ms, 0}}, 11, true},
		{"most have failed", []stretch{usual, {100 * ms, 40, 200 * ms, 30}}, 2, true}, // 9.6 / 8 = 1.2
		{"most have failed, then not", []stretch{
			usual, {100 * ms, 40, 200 * ms, 30}, usual, usual, usual, // halved once less with each
		}, 11, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var of capacity
			now := testEpoch
			for _, s := range c.stretches {
				now = now.Add(s.length)
				of.add(now, s.interval())
			}
			limit, ok := of.limit(now)
			require.Equal(t, c.known, ok)
			if ok {
				assert.InDelta(t, c.limit, limit, 0)
			}
		})
	}
}

func TestRateIsLoweredByTheExcessAndRaisedCarefully(t *testing.T) {
	t.Parallel()
	s := shedRate{rate: math.Inf(1), moved: testEpoch}
	now := testEpoch
	for _, step := range []struct {
		name          string
		after         time.Duration
		excess        float64
		arriving, did float64 // calls in a second
		rate          float64
	}{
		{"all is well", time.Second, 0.8, 1000, 1000, math.Inf(1)},
		{"over: at once, by the excess", ms, 1.25, 1000, 1000, 800},
		{"not twice in half a second", 400 * ms, 1.25, 1000, 1000, 800},
		{"again", 200 * ms, 1.25, 1000, 800, 640},
		{"by a half at the most", 600 * ms, 5, 1000, 640, 320},
		{"not quite below: stays", 600 * ms, 0.95, 1000, 320, 320},
		{"below: by the ratio", 600 * ms, 0.75, 1000, 320, 384},
		{"soon near what was too much, 640", 600 * ms, 0.6, 1000, 384, 544},
		{"then slowly", 600 * ms, 0.6, 1000, 544, 544 * 1.02},
		{"and less slowly", 600 * ms, 0.6, 1000, 554, 544 * 1.02 * 1.03},
		{"over after it was raised: by a fifth at the most", 600 * ms, 3, 1000, 571, 0.8 * 571},
		{"fewer come: no limit is needed", 600 * ms, 0.5, 100, 100, math.Inf(1)},
		{"hardly any call ends well", 600 * ms, 3, 1600, 1, 50},
	} {
		now = now.Add(step.after)
		s.move(now, measure{excess: step.excess, arriving: step.arriving, passing: min(step.arriving, s.rate), good: step.did, span: step.after})
		if math.IsInf(step.rate, 1) {
			assert.True(t, math.IsInf(s.rate, 1), step.name)
		} else {
			assert.InDelta(t, step.rate, s.rate, 1, step.name)
		}
	}
}
