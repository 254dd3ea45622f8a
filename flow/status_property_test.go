package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// status is what the limiter of a rule says of itself.
type status func(now clock.Instant) (limit float64, room int64, reset time.Duration)

// checkReset holds when there is said to be more against what is said then.
func checkReset(t *rapid.T, status status, now clock.Instant, horizon time.Duration) {
	_, remaining, reset := status(now)
	require.GreaterOrEqual(t, remaining, int64(0))
	require.GreaterOrEqual(t, reset, time.Duration(0))
	roomIn := func(d time.Duration) int64 {
		_, remaining, _ := status(now.Add(d))
		return remaining
	}
	before := horizon
	if reset > 0 {
		require.Greater(t, roomIn(reset), remaining, "in %v", reset)
		require.LessOrEqual(t, roomIn(reset-1), remaining, "a nanosecond before %v", reset)
		before = reset
	}
	for range 5 {
		at := time.Duration(rapid.Int64Range(0, int64(before)-1).Draw(t, "before"))
		require.LessOrEqual(t, roomIn(at), remaining, "in %v, said to be %v", at, reset)
	}
}

func drawLimit(t *rapid.T) float64 {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 12), func(n int) float64 { return float64(n) }),
		rapid.SampledFrom([]float64{0.5, 0.95, 1.5, 2.5, 2.9, 7.25}),
		rapid.Float64Range(0.05, 12),
	).Draw(t, "limit")
}

// What a window says can still pass does pass, one call after the other, and one
// more does not; and there is more when it says so, and no sooner.
func TestWindowStatusIsWhatPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		of := flow.Rule{
			Resource: "r", Limit: drawLimit(t),
			Buckets: rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets"), Strict: rapid.Bool().Draw(t, "strict"),
		}
		if rapid.IntRange(0, 3).Draw(t, "warm") == 0 {
			of.WarmUp = flow.WarmUp{Period: 3 * time.Second, Step: rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "step")}
		}
		b := &book{gate: newGate(t, of)}
		t.Repeat(map[string]func(*rapid.T){
			"take":        func(t *rapid.T) { b.take(rapid.Int32Range(1, 3).Draw(t, "n")) },
			"give back":   b.giveBack,
			"time passes": b.letTimePass,
			"another of": func(t *rapid.T) {
				b.change(func(r *flow.Rule) {
					r.Limit = drawLimit(t)
					r.Buckets = rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets")
				})
				b.window.Adopt(b.compiled, b.now)
			},
			"reset": func(t *rapid.T) {
				if b.rule.WarmUp.Period == 0 {
					checkReset(t, b.window.Status, b.now, 30*time.Second)
					return
				}
				_, remaining, reset := b.window.Status(b.now)
				if reset > 0 {
					_, then, _ := b.window.Status(b.now.Add(reset))
					require.Greater(t, then, remaining)
				}
			},
			"all that is left": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "at the reset") {
					_, _, reset := b.window.Status(b.now)
					b.wait(reset)
				}
				_, remaining, _ := b.window.Status(b.now)
				assert.Equal(t, int(remaining), b.pass(int(remaining)))
				assert.Equal(t, rule.Block, b.take(1))
				_, remaining, _ = b.window.Status(b.now)
				assert.Zero(t, remaining)
			},
		})
	})
}

// The same of queues: as many calls as they say pass in time.
func TestQueueStatusIsWhatPasses(t *testing.T) {
	t.Parallel()
	rules := map[string]func(limit float64) flow.Rule{
		"throttle":             func(limit float64) flow.Rule { return throttle(limit, 0) },
		"warming throttle":     func(limit float64) flow.Rule { return warmingThrottle(limit, time.Second) },
		"finely warming":       func(limit float64) flow.Rule { return warmingThrottle(limit, 100*time.Millisecond) },
		"bucket":               func(limit float64) flow.Rule { return bucket(limit, 5) },
		"bucket of a fraction": func(limit float64) flow.Rule { return bucket(limit, 2.5) },
		"overdraft":            func(limit float64) flow.Rule { return overdraft(limit, 5) },
		"warming bucket":       func(limit float64) flow.Rule { return warmingBucket(limit, 2*time.Second) },
	}
	for name, of := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				r := of(drawLimit(t))
				r.MaxWait = rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, time.Second, 2500 * time.Millisecond}).Draw(t, "max wait")
				l := newTestQueue(t, r)
				t.Repeat(map[string]func(*rapid.T){
					"arrive": func(t *rapid.T) { l.arrive(rapid.Int32Range(1, 3).Draw(t, "n")) },
					"time passes": func(t *rapid.T) {
						l.moveTo(l.now.Sub(epoch) + rapid.SampledFrom([]time.Duration{
							1, 99 * time.Millisecond, 333_333_333, time.Second, 5 * time.Second,
						}).Draw(t, "time"))
					},
					"reset": func(t *rapid.T) {
						_, remaining, reset := l.queue.Status(l.now)
						if reset > 0 {
							slack := time.Duration(len(l.waiting))
							l.moveTo(l.now.Sub(epoch) + max(0, reset-1-slack))
							_, before, _ := l.queue.Status(l.now)
							require.LessOrEqual(t, before, remaining, "before %v", reset)
							l.moveTo(l.now.Sub(epoch) + 1 + 2*slack) // as calls pass at whole nanoseconds
							_, then, _ := l.queue.Status(l.now)
							require.Greater(t, then, remaining, "in %v", reset)
							return
						}
						for range 8 {
							l.moveTo(l.now.Sub(epoch) + 700*time.Millisecond)
							_, then, _ := l.queue.Status(l.now)
							require.LessOrEqual(t, then, remaining, "it was said to be the most")
						}
					},
					"all that is left": func(t *rapid.T) {
						_, remaining, _ := l.queue.Status(l.now)
						for i := range remaining {
							require.NotEqual(t, rule.Block, l.arrive(1), "call %d of %d", i, remaining)
						}
						require.Equal(t, rule.Block, l.arrive(1), "after %d", remaining)
					},
				})
			})
		})
	}
}

func warmingThrottle(limit float64, step time.Duration) flow.Rule {
	rule := throttle(limit, 0)
	rule.WarmUp = flow.WarmUp{Period: 3 * time.Second, Step: step}
	return rule
}
