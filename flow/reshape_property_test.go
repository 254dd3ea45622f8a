package flow_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// limiterUnderTest is the limiter of one rule that changes in every way it can, and
// everything that has passed it.
type limiterUnderTest struct {
	rule     flow.Rule
	compiled *flow.Compiled
	version  uint64
	window   *flow.Window
	queue    *flow.Queue
	now      clock.Instant
	passes   []pass
	reshaped bool
	reach    time.Duration // the longest window so far: nothing older is known
}

type pass struct {
	at       clock.Instant
	tokens   int64
	giveBack func()
}

func newLimiterUnderTest(t *rapid.T, rule flow.Rule) *limiterUnderTest {
	l := &limiterUnderTest{now: epoch}
	l.change(t, rule)
	l.reshaped = false
	return l
}

// change puts another rule in force.
func (l *limiterUnderTest) change(t *rapid.T, rule flow.Rule) {
	before := l.rule
	l.forget(flow.Kind().WithDefaults(rule))
	l.rule = flow.Kind().WithDefaults(rule)
	l.version++
	l.compiled = compile(t, rule, l.version)
	switch {
	case l.version > 1 && before.LimiterKind() == l.rule.LimiterKind():
	case l.rule.LimiterKind() == flow.WindowLimiter:
		window := flow.NewWindow(l.compiled, l.now)
		if l.queue != nil {
			window.Follow(l.queue)
		}
		l.window, l.queue = window, nil
	default:
		queue := flow.NewQueue(l.compiled, l.now)
		if l.window != nil {
			queue.Follow(l.window)
		} else if l.queue != nil {
			queue.Follow(l.queue)
		}
		l.window, l.queue = nil, queue
	}
	if rapid.Bool().Draw(t, "adopt at once") {
		if l.window != nil {
			l.window.Adopt(l.compiled, l.now)
		} else {
			l.queue.Adopt(l.compiled, l.now)
		}
	} else {
		l.take(t, 1) // the first call adopts
	}
	l.reach = max(l.reach, l.span())
}

// span is the time that a window looks back, with what an unaligned one adds.
func (l *limiterUnderTest) span() time.Duration {
	if l.rule.LimiterKind() != flow.WindowLimiter {
		return 0
	}
	_, span := l.buckets()
	length, _ := l.buckets()
	return time.Duration(span) * length
}

func (l *limiterUnderTest) buckets() (length time.Duration, span int64) {
	span = int64(max(1, l.rule.Buckets))
	length = l.rule.Window / time.Duration(span)
	if l.rule.Strict {
		span++
	}
	return length, span
}

// forget drops what is not known any more when the rule changes: what has left the
// longest window that there has been, and before the first change of shape what has
// left the only one.
func (l *limiterUnderTest) forget(next flow.Rule) {
	first := !l.reshaped
	l.reshaped = l.reshaped || shapeOf(l.rule) != shapeOf(next) || l.rule.LimiterKind() != next.LimiterKind()
	if !l.reshaped || l.version == 0 {
		return
	}
	l.passes = slices.DeleteFunc(l.passes, func(p pass) bool {
		return l.now.Sub(p.at) >= l.reach || first && !l.holds(p)
	})
}

// shapeOf returns what of a rule makes its shape.
func shapeOf(r flow.Rule) flow.Rule {
	return flow.Rule{Window: r.Window, Buckets: max(1, r.Buckets), Strict: r.Strict}
}

// held returns what is in the window of the rule in force, by the times at which it
// really passed, under whatever rule.
func (l *limiterUnderTest) held() (tokens int64) {
	for _, p := range l.passes {
		if l.holds(p) {
			tokens += p.tokens
		}
	}
	return tokens
}

func (l *limiterUnderTest) holds(p pass) bool {
	length, span := l.buckets()
	return int64(p.at)/int64(length) > int64(l.now)/int64(length)-span
}

// take makes a call and holds it against the promise of the rule in force.
func (l *limiterUnderTest) take(t *rapid.T, n int32) rule.Decision {
	compiled, now := l.compiled, l.now
	if l.window != nil {
		window := l.window
		decision := window.Take(compiled, now, n)
		if decision == rule.Pass {
			l.passes = append(l.passes, pass{now, int64(n), func() { window.GiveBack(compiled, now, n) }})
			require.LessOrEqual(t, float64(l.held()), math.Ceil(l.rule.Limit), "%+v at %v", l.rule, now.Sub(epoch))
		}
		return decision
	}
	queue := l.queue
	turn, decision := queue.Take(compiled, now, n)
	if decision == rule.Pass {
		if last := len(l.passes) - 1; l.rule.Algorithm == flow.Throttle && last >= 0 && l.now.Sub(l.passes[last].at) < l.reach {
			gap := float64(n) * float64(l.rule.Window) / l.rule.Limit
			require.Greater(t, float64(now.Sub(l.passes[last].at)), gap-1, "%+v at %v", l.rule, now.Sub(epoch))
		}
		l.passes = append(l.passes, pass{now, int64(n), func() { queue.GiveBack(now, turn) }})
	}
	return decision
}

var shapes = map[string]flow.Rule{
	"an hour":               {Window: time.Hour},
	"an hour in 60 parts":   {Window: time.Hour, Buckets: 60},
	"an hour in 720 parts":  {Window: time.Hour, Buckets: 720},
	"an hour, strictly":     {Window: time.Hour, Strict: true},
	"an hour, in one":       {Window: time.Hour, Buckets: 1},
	"an hour of the clock":  {Window: time.Hour, Algorithm: flow.FixedWindow},
	"seven minutes":         {Window: 7 * time.Minute},
	"a minute":              {Window: time.Minute},
	"a minute of the clock": {Window: time.Minute, Algorithm: flow.FixedWindow},
	"a second":              {Window: time.Second},
	"a hundredth":           {Window: 10 * time.Millisecond},
	"a warming minute":      {Window: time.Minute, WarmUp: flow.WarmUp{Period: 10 * time.Minute}},
	"a warming second":      {Window: time.Second, WarmUp: flow.WarmUp{Period: 10 * time.Second, Step: 100 * time.Millisecond}},
}

var queueShapes = map[string]flow.Rule{
	"a throttle":       {Window: time.Minute, Algorithm: flow.Throttle},
	"a token bucket":   {Window: time.Minute, Algorithm: flow.TokenBucket},
	"a warming bucket": {Window: time.Minute, Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: time.Minute}},
}

func drawShape(t *rapid.T, of ...map[string]flow.Rule) flow.Rule {
	var names []string
	all := map[string]flow.Rule{}
	for _, some := range of {
		for name, rule := range some {
			names = append(names, name)
			all[name] = rule
		}
	}
	slices.Sort(names)
	rule := all[rapid.SampledFrom(names).Draw(t, "shape")]
	rule.Resource = "r"
	rule.Limit = rapid.SampledFrom([]float64{8, 0, 1, 3, 0.5, 2.5, 40}).Draw(t, "limit")
	return rule
}

var pauses = []time.Duration{
	0, 1, time.Millisecond, 10 * time.Millisecond, 99 * time.Millisecond, time.Second, 6 * time.Second, 59 * time.Second, time.Minute,
	6*time.Minute - 1, 7 * time.Minute, 31 * time.Minute, time.Hour, 3 * time.Hour,
}

func (l *limiterUnderTest) actions(shapes ...map[string]flow.Rule) map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"take": func(t *rapid.T) { l.take(t, rapid.Int32Range(1, 3).Draw(t, "n")) },
		"fill": func(t *rapid.T) {
			for range 50 {
				if l.take(t, 1) != rule.Pass {
					break
				}
			}
		},
		"give back": func(t *rapid.T) {
			ago := rapid.IntRange(1, 8).Draw(t, "calls ago")
			if ago > len(l.passes) {
				t.Skip("there is nothing to give back")
			}
			i := len(l.passes) - ago
			l.passes[i].giveBack()
			l.passes = slices.Delete(l.passes, i, i+1)
		},
		"retry": func(t *rapid.T) {
			n := rapid.Int32Range(1, 8).Draw(t, "n")
			if l.window == nil || l.rule.WarmUp.Period > 0 || l.take(t, n) == rule.Pass {
				return
			}
			if wait := l.window.RetryAfter(l.now, n); wait != rule.Never {
				l.now = l.now.Add(wait)
				require.Equal(t, rule.Pass, l.take(t, n), "after %v", wait)
			}
		},
		"time passes": func(t *rapid.T) { l.now = l.now.Add(rapid.SampledFrom(pauses).Draw(t, "pause")) },
		"another shape": func(t *rapid.T) {
			l.change(t, drawShape(t, shapes...))
		},
	}
}

// Whatever shapes a window goes through: what the window of the rule in force holds,
// counted by the times at which it really passed, never exceeds the limit in force.
func TestWindowHoldsItsLimitOverEveryChangeOfShape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLimiterUnderTest(t, drawShape(t, shapes))
		t.Repeat(l.actions(shapes))
	})
}

// The same over changes of how a rule counts at all, as far as a window has counted.
func TestLimitHoldsOverEveryChangeOfAlgorithm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLimiterUnderTest(t, drawShape(t, shapes))
		t.Repeat(l.actions(shapes, queueShapes))
	})
}

// After a time longer than any window was, nothing that passed counts any more.
func TestPassLogIsDroppedInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLimiterUnderTest(t, drawShape(t, shapes))
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			l.now = l.now.Add(rapid.SampledFrom(pauses).Draw(t, "pause"))
			for range 10 {
				l.take(t, 1)
			}
			l.change(t, drawShape(t, shapes, queueShapes))
		}
		l.change(t, flow.Rule{Resource: "r", Limit: 8, Window: time.Minute})
		l.now = l.now.Add(3 * time.Hour)
		passed := 0
		for l.take(t, 1) == rule.Pass {
			passed++
		}
		assert.Equal(t, 8, passed)
		l.now = l.now.Add(24 * time.Hour)
		assert.True(t, l.window.Idle(l.now), "nothing is remembered for ever")
	})
}
