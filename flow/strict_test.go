package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// mostWithin returns the most of ascending instants that any interval of a
// length has, its ends included.
func mostWithin(instants []clock.Instant, length time.Duration) (most int) {
	first := 0
	for i := range instants {
		for instants[i].Sub(instants[first]) > length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestStrictHoldsOverEveryInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "limit")
		r := flow.Rule{
			Resource: "r", Limit: float64(limit), Strict: true,
			Buckets: rapid.SampledFrom([]int{1, 2, 5, 10, 20}).Draw(t, "buckets"),
			Window:  rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "window"),
		}
		g := newGate(t, r)
		var passed []clock.Instant
		gap := rapid.Int64Range(0, 3*int64(r.Window)/int64(limit))
		for range 200 {
			g.wait(time.Duration(gap.Draw(t, "gap")))
			if g.take(1) == rule.Pass {
				passed = append(passed, g.now)
			}
		}
		assert.LessOrEqual(t, mostWithin(passed, r.Window), limit)
	})
}

func TestStrictPassesItsShareUnderOverload(t *testing.T) {
	t.Parallel()
	for _, buckets := range []int{1, 2, 5, 10, 20, 100} {
		for _, limit := range []int{1, 7, 300} {
			for _, overload := range []int{2, 5} {
				g := newGate(t, flow.Rule{Resource: "r", Limit: float64(limit), Buckets: buckets, Strict: true})
				const windows = 60
				passed := sum(g.offer(max(limit, buckets)*overload, windows))
				share := float64(limit*buckets) / float64(buckets+1)
				assert.GreaterOrEqual(t, passed, int(share*windows), "%d in %d buckets", limit, buckets)
			}
		}
	}
}

func TestWithoutStrictAnIntervalMaySeeMore(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	var passed []clock.Instant
	for _, d := range []time.Duration{99 * time.Millisecond, time.Second} {
		g.moveTo(d)
		for range g.pass(10) {
			passed = append(passed, g.now)
		}
	}
	assert.Equal(t, 20, mostWithin(passed, time.Second), "what strict is for")
}
