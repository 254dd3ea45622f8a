package adaptive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const (
	testEpoch = clock.Instant(1_700_000_000 * int64(time.Second))
	ms        = time.Millisecond
)

// noSignals is what rules find that read no signal.
type noSignals struct{}

func (noSignals) Reading(rule.Signal) *rule.Reading { return new(rule.Reading) }

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
			limit, _, ok := of.limit(now)
			require.Equal(t, c.known, ok)
			if ok {
				assert.InDelta(t, c.limit, limit, 0)
			}
		})
	}
}

func newTestGradient(r Rule) (*gradientControl, *shedLimiter) {
	r.Resource, r.Strategy = "r", Gradient
	l := newGradient(r.WithDefaults(), rule.Env{Now: testEpoch, Seed: 1, Signals: noSignals{}}).(*shedLimiter)
	return l.state.control.(*gradientControl), l
}

// settle lets ten windows of calm pass, so that the long run is known.
func settle(g *gradientControl, l *shedLimiter, took time.Duration) {
	for range gradientWarmUp {
		g.update(testEpoch, l, stretch{length: 100 * ms, calls: 40, took: took}.interval())
	}
}

// The limits were computed by hand: L + 0.2 · (L · g + √L − L), g = 1.5 · long / short from
// 0.5 to 1.
func TestGradientMovesTheLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		short time.Duration // after a long run of 10 ms
		calls float64       // of a window of 100 ms
		limit float64       // after 16
	}{
		{"as long as ever: grows by a fifth of its root", 10 * ms, 160, 16.8},
		{"within the tolerance", 15 * ms, 160, 16.8},
		{"twice as long: g = 0.75", 20 * ms, 160, 16},     // long run 10.017 ms, see the tolerance of the test
		{"much longer: g = 0.5", 100 * ms, 160, 15.2},     // 16 + 0.2 · (8 + 4 − 16)
		{"not much is under way: stays", 10 * ms, 79, 16}, // 7.9 of 16
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, l := newTestGradient(Rule{MinLimit: 2, InitialLimit: 16})
			settle(g, l, 10*ms)
			g.limit = 16
			g.update(testEpoch, l, stretch{length: 100 * ms, calls: c.calls, took: c.short}.interval())
			assert.InDelta(t, c.limit, g.limit, 0.02)
		})
	}
}

func TestGradientKeepsItsBounds(t *testing.T) {
	t.Parallel()
	g, l := newTestGradient(Rule{MinLimit: 5, MaxLimit: 30})
	settle(g, l, 10*ms)
	for range 200 {
		g.update(testEpoch, l, stretch{length: 100 * ms, calls: 3000, took: 10 * ms}.interval())
	}
	assert.InDelta(t, 30, g.limit, 0)
	g.long = float64(ms)
	for range 60 {
		g.update(testEpoch, l, stretch{length: 100 * ms, calls: 3000, took: 100 * ms}.interval())
	}
	assert.InDelta(t, 5, g.limit, 0)
	g.adopt(Rule{MinLimit: 8, MaxLimit: 9})
	g.update(testEpoch, l, &interval{})
	assert.InDelta(t, 8, g.limit, 0)
}

// The long run follows the present within a minute, and ten times as slowly while calls are
// refused: this is how fast the limit can drift upwards.
func TestLongRunHardlyLearnsWhileCallsAreRefused(t *testing.T) {
	t.Parallel()
	after := func(refused float64, seconds int) float64 {
		g, l := newTestGradient(Rule{})
		settle(g, l, 10*ms)
		for range 10 * seconds {
			i := stretch{length: 100 * ms, calls: 40, took: 40 * ms}.interval()
			i.refused = refused
			g.update(testEpoch, l, i)
		}
		return g.long / float64(ms)
	}
	assert.InDelta(t, 40-30*math.Exp(-1), after(0, 60), 0.1)
	assert.InDelta(t, 40-30*math.Exp(-0.1), after(100, 60), 0.1)
	assert.InDelta(t, 40-30*math.Exp(-1), after(100, 600), 0.1)
}

func TestLongRunFallsQuicklyAfterOverload(t *testing.T) {
	t.Parallel()
	g, l := newTestGradient(Rule{})
	settle(g, l, 100*ms)
	for range 50 { // five seconds
		g.update(testEpoch, l, stretch{length: 100 * ms, calls: 40, took: 10 * ms}.interval())
	}
	assert.Less(t, g.long/float64(ms), 21.)
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
