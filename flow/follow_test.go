package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// oneSignal is the reading of every signal.
type oneSignal struct{ reading rule.Reading }

func (s *oneSignal) Reading(rule.Signal) *rule.Reading { return &s.reading }

func (s *oneSignal) Store(shown float64) { s.reading.Store(shown) }

func (s *oneSignal) Fail() { s.reading.Store(math.NaN()) }

// memory makes a rule follow the memory in use: from 70 % of it to 90 %.
func memory(r flow.Rule, least float64) flow.Rule {
	r.Follow = flow.Follow{Signal: rule.SignalMemory, From: 0.7, To: 0.9, Least: least}
	return r
}

// following returns the rule compiled, and the signal that it follows.
func following(t require.TestingT, r flow.Rule) (*flow.Compiled, *oneSignal) {
	signal := new(oneSignal)
	compiled := compile(t, r, 1)
	compiled.FollowSignal(signal)
	return compiled, signal
}

// newFollowingGate returns a window whose limit follows a signal.
func newFollowingGate(t require.TestingT, r flow.Rule) (*gate, *oneSignal) {
	compiled, signal := following(t, r)
	return &gate{
		t: t, rule: flow.Kind().WithDefaults(r), compiled: compiled, version: 1, window: flow.NewWindow(compiled, epoch), now: epoch,
	}, signal
}

func effective(w interface {
	Status(now clock.Instant) (float64, int64, time.Duration)
}, now clock.Instant,
) float64 {
	limit, _, _ := w.Status(now)
	return limit
}

func TestLimitFallsLinearlyWhileItsSignalRises(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"sliding window": reject(1000),
		"fixed window":   {Resource: "r", Limit: 1000, Algorithm: flow.FixedWindow},
		"token bucket":   {Resource: "r", Limit: 1000, Algorithm: flow.TokenBucket},
		"throttle":       throttle(1000, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled, signal := following(t, memory(r, 100))
			var limiter interface {
				Status(now clock.Instant) (float64, int64, time.Duration)
			} = flow.NewQueue(compiled, epoch)
			if r.LimiterKind() == flow.WindowLimiter {
				limiter = flow.NewWindow(compiled, epoch)
			}
			assert.InDelta(t, 1000, effective(limiter, epoch), 0, "not sampled yet")
			for _, step := range []struct{ shown, limit float64 }{
				{0, 1000}, {0.7, 1000}, {0.7001, 999.55}, {0.75, 775}, {0.8, 550}, {0.85, 325}, {0.9, 100}, {1, 100}, {0.8, 550},
			} {
				signal.Store(step.shown)
				assert.InDelta(t, step.limit, effective(limiter, epoch), 1e-9, "at %v", step.shown)
			}
			signal.Store(math.NaN())
			assert.InDelta(t, 1000, effective(limiter, epoch), 0, "cannot be read")
		})
	}
}

func TestFallingSignalOfTheProgramLowersTheLimit(t *testing.T) {
	t.Parallel()
	r := reject(100)
	r.Follow = flow.Follow{Signal: "connections-left", From: 50, To: 10, Least: 20}
	g, signal := newFollowingGate(t, r)
	for _, step := range []struct{ shown, limit float64 }{{1000, 100}, {50, 100}, {30, 60}, {10, 20}, {0, 20}} {
		signal.Store(step.shown)
		assert.InDelta(t, step.limit, effective(g.window, g.now), 1e-9, "at %v", step.shown)
	}
}

func TestWindowRefusesWhileItHoldsMoreThanTheLowerLimit(t *testing.T) {
	t.Parallel()
	g, signal := newFollowingGate(t, memory(reject(10), 2))
	require.Equal(t, 6, g.pass(6))
	signal.Store(0.9)
	assert.Equal(t, rule.Block, g.take(1), "6 of 2 are used")
	assert.Equal(t, time.Second, g.window.RetryAfter(g.now, 1), "when the 6 leave the window")
	signal.Store(0.8)
	assert.Equal(t, rule.Block, g.take(1), "6 of 6 are used")
	signal.Store(0.75)
	assert.Equal(t, 2, g.pass(5), "6 of 8 are used")
	g.wait(time.Second)
	signal.Store(0.95)
	assert.Equal(t, 2, g.pass(5))
}

func TestLongFixedWindowFollowsItsSignalAtOnce(t *testing.T) {
	t.Parallel()
	g, signal := newFollowingGate(t, memory(flow.Rule{Resource: "r", Limit: 100, Window: time.Hour, Algorithm: flow.FixedWindow}, 10))
	require.Equal(t, 20, g.pass(20))
	g.wait(time.Minute)
	signal.Store(0.9)
	assert.Equal(t, 0, g.pass(5))
	g.wait(time.Minute)
	signal.Store(0.1)
	assert.Equal(t, 80, g.pass(100))
}

func TestTimeIsUnknownUntilASignalAllowsForALargeCall(t *testing.T) {
	t.Parallel()
	g, signal := newFollowingGate(t, memory(reject(10), 2))
	signal.Store(0.9)
	require.Equal(t, rule.Block, g.take(5))
	assert.Zero(t, g.window.RetryAfter(g.now, 5), "10 may pass when the signal falls")
	require.Equal(t, rule.Block, g.take(11))
	assert.Equal(t, rule.Never, g.window.RetryAfter(g.now, 11))
	signal.Store(0)
	assert.Equal(t, rule.Pass, g.take(5))
}

func TestOlderVersionDoesNotFollowTheSignalAnyMore(t *testing.T) {
	t.Parallel()
	g, signal := newFollowingGate(t, memory(reject(10), 2))
	old := g.compiled
	g.change(func(r *flow.Rule) { r.Limit = 20 })
	g.compiled.FollowSignal(signal)
	require.Equal(t, rule.Pass, g.take(1))
	signal.Store(0.9)
	assert.Equal(t, rule.Stale, g.window.Take(old, g.now, 1))
	assert.Equal(t, 1, g.pass(5), "2, of which one was used")
	signal.Store(0)
	assert.Equal(t, rule.Stale, g.window.Take(old, g.now, 1))
	assert.Equal(t, 18, g.pass(30))
}

func TestWarmResourceStaysAsWarmWhenItsSignalMoves(t *testing.T) {
	t.Parallel()
	warm := func(window time.Duration) flow.Rule {
		return flow.Rule{Resource: "r", Limit: 900, Window: window, WarmUp: flow.WarmUp{Period: 20 * time.Second}}
	}
	for name, r := range map[string]flow.Rule{
		"a window of a step":  warm(time.Second),
		"a window of 4 steps": warm(4 * time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alike := newGate(t, r)
			g, signal := newFollowingGate(t, memory(r, 90))
			for range 15 { // seconds of full load, after each of which the signal comes and goes
				alike.offer(1000, 1)
				g.offer(1000, 1)
				want := effective(alike.window, g.now)
				signal.Store(0.8)
				assert.InEpsilon(t, want*495/900, effective(g.window, g.now), 1e-9)
				signal.Store(0.5)
				assert.InEpsilon(t, want, effective(g.window, g.now), 1e-9)
			}
			assert.Greater(t, effective(g.window, g.now), 400.0, "it has warmed up")
		})
	}
}

func TestFirstInTheQueueLooksForAHigherLimit(t *testing.T) {
	t.Parallel()
	compiled, signal := following(t, memory(throttle(10, time.Minute), 0.1))
	q := flow.NewQueue(compiled, epoch)
	signal.Store(1)
	_, decision := q.Take(compiled, epoch, 1)
	require.Equal(t, rule.Pass, decision)
	first, second := unwoken(), unwoken()
	_, decision = q.Join(compiled, epoch, 1, time.Hour, first)
	require.Equal(t, rule.Wait, decision)
	_, decision = q.Join(compiled, epoch, 1, time.Hour, second)
	require.Equal(t, rule.Wait, decision)

	_, after, decision := q.Poll(epoch, first)
	require.Equal(t, rule.Wait, decision)
	assert.Equal(t, 250*time.Millisecond, after, "rather than the ten seconds until it may pass")
	signal.Store(0.7)
	now := epoch.Add(after)
	turn, _, decision := q.Poll(now, first)
	require.Equal(t, rule.Pass, decision, "a tenth of a second after the last one, or later")
	assert.Equal(t, now, turn.Time())
	_, after, decision = q.Poll(now, second)
	require.Equal(t, rule.Wait, decision)
	assert.Equal(t, 100*time.Millisecond, after)
}

func TestWaitingCallIsRefusedWhenALowerLimitTakesTooLong(t *testing.T) {
	t.Parallel()
	compiled, signal := following(t, memory(throttle(10, time.Second), 0.1))
	q := flow.NewQueue(compiled, epoch)
	_, decision := q.Take(compiled, epoch, 1)
	require.Equal(t, rule.Pass, decision)
	w := unwoken()
	_, decision = q.Join(compiled, epoch, 1, time.Hour, w)
	require.Equal(t, rule.Wait, decision)
	signal.Store(0.9)
	_, _, decision = q.Poll(epoch.Add(50*time.Millisecond), w)
	assert.Equal(t, rule.Block, decision)
	assert.Equal(t, 10*time.Second-50*time.Millisecond-time.Second, q.RetryAfter(epoch.Add(50*time.Millisecond), 1, time.Hour))
}

func TestTokenBucketKeepsItsTokensWhenItsSignalMoves(t *testing.T) {
	t.Parallel()
	compiled, signal := following(t, memory(flow.Rule{Resource: "r", Limit: 100, Algorithm: flow.TokenBucket, Burst: 50}, 10))
	q := flow.NewQueue(compiled, epoch)
	take := func(at time.Duration, n int32) rule.Decision {
		_, decision := q.Take(compiled, epoch.Add(at), n)
		return decision
	}
	require.Equal(t, rule.Pass, take(0, 50))
	signal.Store(0.9)
	assert.Equal(t, rule.Block, take(100*time.Millisecond, 11), "10 had flowed in when the limit fell")
	assert.Equal(t, rule.Pass, take(100*time.Millisecond, 10))
	assert.Equal(t, rule.Block, take(200*time.Millisecond, 2))
	assert.Equal(t, rule.Pass, take(200*time.Millisecond, 1), "of ten a second")
	signal.Store(0)
	assert.Equal(t, rule.Block, take(200*time.Millisecond, 1))
	assert.Equal(t, rule.Pass, take(300*time.Millisecond, 10))
}

func TestLimiterThatIsNotActiveYetLeavesTheOtherOneAlone(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]flow.Rule{
		"window":   memory(reject(10), 2),
		"throttle": memory(throttle(10, 0), 2),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			present := compile(t, flow.Rule{Resource: "r", Limit: 10, Algorithm: flow.TokenBucket}, 0)
			before := flow.NewQueue(present, epoch)
			compiled, signal := following(t, r)
			if r.LimiterKind() == flow.WindowLimiter {
				w := flow.NewWindow(compiled, epoch)
				w.Follow(before)
				signal.Store(0.9)
				w.Status(epoch)
				w.Idle(epoch)
			} else {
				q := flow.NewQueue(compiled, epoch)
				q.Follow(before)
				signal.Store(0.9)
				q.Status(epoch)
				q.Idle(epoch)
			}
			_, decision := before.Take(present, epoch, 1)
			assert.Equal(t, rule.Pass, decision)
		})
	}
}

func TestFollowingAllocatesNothingWhileTheSignalStays(t *testing.T) {
	compiled, signal := following(t, memory(reject(1e9), 100))
	signal.Store(0.8)
	w := flow.NewWindow(compiled, epoch)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { w.Take(compiled, epoch, 1) }))
}

func TestValidateFindsMistakesInFollow(t *testing.T) {
	t.Parallel()
	sound := flow.Follow{Signal: rule.SignalMemory, From: 0.7, To: 0.9, Least: 5}
	require.Empty(t, flow.Kind().Faults(flow.Rule{Resource: "r", Limit: 10, Follow: sound}))
	for name, c := range map[string]struct {
		change func(*flow.Follow)
		faults []rule.Fault
	}{
		"nothing but least": {func(f *flow.Follow) { *f = flow.Follow{Least: 5} }, []rule.Fault{
			{Field: "follow.signal", Message: `is missing: write which signal the limit follows, such as "memory"`},
			{Field: "follow.to", Message: `is 0, as from is: must differ, so that the limit falls between the two`},
		}},
		"misspelled": {func(f *flow.Follow) { f.Signal = "memmory" }, []rule.Fault{
			{Field: "follow.signal", Message: `is "memmory": did you mean "memory"?`},
		}},
		"no least": {func(f *flow.Follow) { f.Least = 0 }, []rule.Fault{
			{Field: "follow.least", Message: `is missing or 0: write how many tokens may still pass in a window when the signal is at to`},
		}},
		"too much at least": {func(f *flow.Follow) { f.Least = 10 }, []rule.Fault{
			{Field: "follow.least", Message: `is 10: must be less than the limit, 10; or remove follow`},
		}},
		"negative": {func(f *flow.Follow) { f.From, f.Least = -1, -1 }, []rule.Fault{
			{Field: "follow.from", Message: `is -1: must be from 0 to 1e+12`},
			{Field: "follow.least", Message: `is -1: must be greater than 0 and less than the limit`},
		}},
		"the wrong way round": {func(f *flow.Follow) { f.From, f.To = 0.9, 0.7 }, []rule.Fault{
			{Field: "follow.to", Message: `is 0.7: must be greater than from, 0.9: the limit falls while the signal rises`},
		}},
		"percent": {func(f *flow.Follow) { f.From, f.To = 70, 90 }, []rule.Fault{
			{Field: "follow.to", Message: `is 90: must be at most 1, the greatest share that signal "memory" shows`},
		}},
		"beyond all numbers": {func(f *flow.Follow) { f.Signal, f.To = "mine", 2e12 }, []rule.Fault{
			{Field: "follow.to", Message: `is 2e+12: must be from 0 to 1e+12`},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow := sound
			c.change(&follow)
			assert.Equal(t, c.faults, flow.Kind().Faults(flow.Rule{Resource: "r", Limit: 10, Follow: follow}))
		})
	}
}
