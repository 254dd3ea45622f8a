package flow_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// A fractional limit holds on average: over a long time exactly the limit
// passes, however the calls fall into the buckets.
func TestFractionalLimitsHoldOnAverage(t *testing.T) {
	t.Parallel()
	const windows = 100
	for _, limit := range []float64{0.1, 0.5, 0.667, 0.95, 1.3, 2.5, 7.25, 33.4, 333.3} {
		for _, rate := range []int{10, 17, 100, 351, 400, 1000} {
			if float64(rate) < 1.05*limit {
				continue
			}
			for _, buckets := range []int{1, 4, 10} {
				t.Run(fmt.Sprintf("%v of %d in %d buckets", limit, rate, buckets), func(t *testing.T) {
					t.Parallel()
					g := newGate(t, flow.Rule{Resource: "r", Limit: limit, Buckets: buckets})
					passed := sum(g.offer(rate, windows))
					assert.InDelta(t, limit*windows, passed, 2)
				})
			}
		}
	}
}

func TestFractionalLimitsHoldOnAverageInOtherWindows(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 10 * time.Second, time.Minute} {
		for _, limit := range []float64{0.3, 1.3, 2.5, 33.4} {
			g := newGate(t, flow.Rule{Resource: "r", Limit: limit, Window: window})
			windows := 200.0
			var passed int
			for range int(windows) * 100 {
				passed += g.pass(1)
				g.wait(window / 100)
			}
			assert.InDelta(t, limit*windows, passed, 1+limit, "%v per %v", limit, window)
		}
	}
}

// Below one there are no whole tokens that could be lost while nobody calls:
// however few the calls, as long as one comes in each window, the average holds.
func TestLimitsBelowOneHoldOnAverageOfFewCalls(t *testing.T) {
	t.Parallel()
	const windows = 300
	for _, limit := range []float64{0.1, 0.5, 0.667, 0.9} {
		for _, rate := range []int{1, 2, 3, 7} {
			passed := sum(newGate(t, reject(limit)).offer(rate, windows))
			assert.InDelta(t, limit*windows, passed, 2, "%v of %d", limit, rate)
		}
	}
}

func TestStrictFractionalLimitsPassTheirShare(t *testing.T) {
	t.Parallel()
	const windows = 300
	for _, limit := range []float64{0.5, 1.3, 2.5, 33.4} {
		g := newGate(t, flow.Rule{Resource: "r", Limit: limit, Strict: true})
		passed := sum(g.offer(100, windows))
		assert.InDelta(t, limit*windows*10/11, passed, 1+limit, "limit %v", limit)
	}
}

func TestTwoOfThreeSecondsAtTwoThirds(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(0.667))
	for _, passed := range [][]int{g.offer(1000, 3), g.offer(1000, 3), g.offer(1000, 3)} {
		assert.Equal(t, 2, sum(passed), "%v", passed)
	}
}

func TestFractionOfAnEarlierLimitIsDropped(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(0.5))
	g.moveTo(time.Minute)
	g.change(func(r *flow.Rule) { r.Limit = 3 })
	assert.Equal(t, 3, g.pass(9))
	g.change(func(r *flow.Rule) { r.Limit = 3.5 })
	assert.LessOrEqual(t, g.pass(9), 1)
	g.change(func(r *flow.Rule) { r.Limit = 0 })
	g.moveTo(2 * time.Minute)
	assert.Zero(t, g.pass(9))
}

func TestSpentCarriedTokenCountsUnderAWholeLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(2.5))
	for i, at := range []float64{2, 2.3, 2.5} { // the third takes the saved one
		g.moveTo(seconds(at))
		assert.Equal(t, 1, g.pass(1), "call %d", i)
	}
	g.moveTo(2600 * time.Millisecond)
	g.change(func(r *flow.Rule) { r.Limit = 2 })
	assert.Zero(t, g.pass(9))
	g.moveTo(3 * time.Second)
	assert.Zero(t, g.pass(9), "one has left, two are in the window")
	g.moveTo(3300 * time.Millisecond)
	assert.Equal(t, 1, g.pass(9))
}

func TestCarriedTokenThatIsGivenBackIsNotSpentTwice(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(0.95))
	taken := g.now
	assert.Equal(t, 1, g.pass(9))
	g.moveTo(800 * time.Millisecond)
	assert.Zero(t, g.pass(9))
	g.window.GiveBack(g.compiled, taken, 1)
	assert.Equal(t, 1, g.pass(9))
	for g.now < epoch.Add(1700*time.Millisecond) {
		g.wait(100 * time.Millisecond)
		assert.Zero(t, g.pass(9), "one is in the window, %v", g.now.Sub(epoch))
	}
	g.wait(100 * time.Millisecond)
	assert.Equal(t, 1, g.pass(9))
}

func TestCarriedTokenGivenBackAfterAReloadIsSavedAgain(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(0.5))
	assert.Equal(t, 1, g.pass(9))
	g.change(func(*flow.Rule) {})
	assert.Zero(t, g.pass(9), "the token is known to be spent")
	g.window.GiveBack(g.compiled, g.now, 1)
	g.wait(100 * time.Millisecond)
	assert.Equal(t, 1, g.pass(9))
	wait := g.window.RetryAfter(g.now, 1)
	assert.Equal(t, 1900*time.Millisecond, wait, "two windows, less the bucket in which it was saved")
	g.wait(wait)
	assert.Equal(t, 1, g.pass(9), "after %v", wait)
}

// A limit so small that no second token will ever be saved up still lets the first call
// pass, and gives answers that make sense.
func TestTinyLimitsPassOnceAndRetryAfterIsInTheFuture(t *testing.T) {
	t.Parallel()
	for exponent := -300.0; exponent <= -1; exponent++ {
		for _, window := range []time.Duration{10 * time.Millisecond, time.Second, 24 * time.Hour} {
			g := newGate(t, flow.Rule{Resource: "r", Limit: math.Pow(10, exponent), Window: window})
			assert.Equal(t, 1, g.pass(9), "1e%v per %v", exponent, window)
			assert.GreaterOrEqual(t, g.window.RetryAfter(g.now, 1), time.Duration(0), "1e%v per %v", exponent, window)
			_, _, reset := g.window.Status(g.now)
			assert.GreaterOrEqual(t, reset, time.Duration(0), "1e%v per %v", exponent, window)
		}
	}
}
