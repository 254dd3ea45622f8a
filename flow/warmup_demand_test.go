package flow_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// demand makes calls of n tokens, evenly spread, for some seconds, and returns how
// many tokens of each second's pass.
func (g *gate) demand(n int32, perSecond float64, seconds int) []int {
	passed := make([]int, seconds)
	start := g.now
	for k := range int(perSecond * float64(seconds)) {
		elapsed := time.Duration(float64(k) * 1e9 / perSecond)
		g.now = start.Add(elapsed)
		if g.take(n) == rule.Pass {
			passed[elapsed/time.Second] += int(n)
		}
	}
	g.now = start.Add(time.Duration(seconds) * time.Second)
	return passed
}

// demand is the same for a queue.
func (l *testQueue) demand(n int32, perSecond float64, seconds int) []int {
	passed := make([]int, seconds)
	start, first := l.now.Sub(epoch), len(l.passes)
	for k := range int(perSecond * float64(seconds)) {
		l.moveTo(start + time.Duration(float64(k)*1e9/perSecond))
		l.arrive(n)
	}
	l.moveTo(start + time.Duration(seconds)*time.Second)
	for _, p := range l.passes[first:] {
		passed[min(int((p.at-start)/time.Second), seconds-1)] += int(n)
	}
	return passed
}

func TestWindowWarmsUpWhenCallsTakeSeveralTokens(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []flow.Algorithm{flow.SlidingWindow, flow.FixedWindow} {
		for _, test := range []struct {
			limit       float64
			tokens      int32
			cold, warm  int // tokens in the first ten seconds, and in ten of the seconds when warm
			warmSeconds int
		}{
			{1000, 1, 4270, 10_000, 12},
			{1000, 50, 4000, 10_000, 12},
			{1000, 334, 3500, 6680, 20},
			{1000, 1000, 4000, 10_000, 20},
			{100, 34, 350, 680, 20},
			{100, 40, 400, 800, 20},
			{100, 51, 400, 510, 25},
			{100, 100, 400, 1000, 20},
		} {
			t.Run(fmt.Sprintf("%s of %v, calls of %d", algorithm, test.limit, test.tokens), func(t *testing.T) {
				t.Parallel()
				rule := flow.Rule{Resource: "r", Limit: test.limit, Algorithm: algorithm, WarmUp: flow.WarmUp{Period: 10 * time.Second}}
				g := newGate(t, rule)
				passed := g.demand(test.tokens, 30*test.limit/float64(test.tokens), test.warmSeconds)
				assert.InDelta(t, test.cold, sum(passed[:10]), max(0.15*float64(test.cold), 1.01*float64(test.tokens)), "%v", passed)
				assert.Equal(t, test.warm, sum(g.demand(test.tokens, 30*test.limit/float64(test.tokens), 10)))
			})
		}
	}
}

// A cold resource gets calls that are larger than its effective limit as often as the
// limit allows on average, and a window never holds more than the limit.
func TestLargeCallsPassAtTheColdRateOnAverage(t *testing.T) {
	t.Parallel()
	for _, coldFactor := range []float64{2, 3, 7, 100} {
		for _, tokens := range []int32{51, 60, 100} {
			rule := flow.Rule{Resource: "r", Limit: 100, WarmUp: flow.WarmUp{Period: 24 * time.Hour, ColdFactor: coldFactor}}
			g := newGate(t, rule)
			const seconds = 1000
			passed := sum(g.demand(tokens, 20, seconds))
			want := 100 / coldFactor * seconds
			assert.LessOrEqual(t, float64(passed), want*1.01, "factor %v, %d tokens", coldFactor, tokens)
			assert.GreaterOrEqual(t, float64(passed), 0.9*want-float64(tokens), "factor %v, %d tokens", coldFactor, tokens)
		}
	}
}

func TestSmallCallsDoNotTakeWhatIsSavedForALargeOne(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 90, WarmUp: flow.WarmUp{Period: time.Hour}})
	assert.Equal(t, rule.Block, g.take(90))
	g.wait(2500 * time.Millisecond)
	assert.Equal(t, 30, g.pass(100), "the effective limit")
	assert.Equal(t, rule.Block, g.take(90), "the window has no room for all of it")
	g.wait(time.Second)
	assert.Equal(t, rule.Pass, g.take(90))
	assert.Zero(t, g.pass(100))
}

// What RetryAfter says holds if nobody else comes and the effective limit does not fall. Where
// a window is longer than a step, its effective limit may fall while nobody calls.
func TestLargeCallPassesAfterItsRetryAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := flow.Rule{
			Resource: "r", Limit: rapid.Float64Range(2, 200).Draw(t, "limit"),
			WarmUp: flow.WarmUp{Period: time.Minute, ColdFactor: rapid.Float64Range(1.1, 20).Draw(t, "cold factor")},
		}
		g := newGate(t, r)
		g.wait(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
		g.pass(rapid.IntRange(0, 50).Draw(t, "small calls"))
		n := int32(rapid.IntRange(2, int(r.Limit)).Draw(t, "tokens"))
		for range 3 {
			if g.take(n) == rule.Pass {
				continue
			}
			after := g.window.RetryAfter(g.now, n)
			require.Positive(t, after)
			require.LessOrEqual(t, after.Seconds(), 2.2+float64(n)*r.WarmUp.ColdFactor/r.Limit)
			g.wait(after)
			require.Equal(t, rule.Pass, g.take(n), "after %v", after)
		}
	})
}

// The effective limit rises between a refusal and its RetryAfter.
func TestRetryAfterHoldsWhenTheEffectiveLimitRises(t *testing.T) {
	t.Parallel()
	type call struct {
		at         time.Duration
		tokens     int32
		retryAfter time.Duration // 0: it passes
	}
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		limit, coldFactor float64
		period            time.Duration
		calls             []call
	}{
		"it takes what was saved for it": { // 95.97 a second, from 1 s on 96.09
			200, 2.083984375, time.Minute,
			[]call{{700 * ms, 16, 0}, {700 * ms, 96, 300 * ms}, {1000 * ms, 96, 0}},
		},
		"a larger one was refused, too": { // 6.9 a second, from 1 s on 7.11
			20, 2.9, 5 * time.Second,
			[]call{{0, 10, 600 * ms}, {500 * ms, 4, 0}, {500 * ms, 7, 600 * ms}, {1100 * ms, 7, 0}},
		},
		"a large one has passed, and small ones come": { // 2.22 a second, from 1 s on 3.88
			10, 4.5, 2 * time.Second,
			[]call{{0, 4, 900 * ms}, {900 * ms, 4, 0}, {1000 * ms, 1, 0}, {1000 * ms, 1, 900 * ms}, {1900 * ms, 1, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, flow.Rule{
				Resource: "r", Limit: test.limit, WarmUp: flow.WarmUp{Period: test.period, ColdFactor: test.coldFactor},
			})
			for _, c := range test.calls {
				g.moveTo(c.at)
				if c.retryAfter == 0 {
					require.Equal(t, rule.Pass, g.take(c.tokens), "%+v", c)
					continue
				}
				require.Equal(t, rule.Block, g.take(c.tokens), "%+v", c)
				require.Equal(t, c.retryAfter, g.window.RetryAfter(g.now, c.tokens), "%+v", c)
			}
		})
	}
}

// A window that holds far more than its effective limit has nothing to save at first.
func TestRetryAfterOfALargeCallHoldsAfterTheEffectiveLimitFell(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 1000, WarmUp: flow.WarmUp{Period: 5 * time.Second, ColdFactor: 20}})
	g.demand(1, 2000, 60)
	g.wait(900 * time.Millisecond)
	require.Equal(t, rule.Pass, g.take(240))
	g.wait(100 * time.Millisecond)
	limit, _, _ := g.window.Status(g.now)
	require.InDelta(t, 95.9, limit, 0.1)
	require.Equal(t, rule.Block, g.take(105))
	require.Equal(t, 2400*time.Millisecond, g.window.RetryAfter(g.now, 105))
	g.wait(2400 * time.Millisecond)
	assert.Equal(t, rule.Pass, g.take(105))
}

// Calls of all sizes, some of which come again when RetryAfter has said so.
func TestRetryAfterHoldsUnlessTheEffectiveLimitFalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := flow.Rule{
			Resource: "r", Limit: rapid.Float64Range(2, 200).Draw(t, "limit"),
			WarmUp: flow.WarmUp{
				Period:     time.Duration(rapid.IntRange(1, 60).Draw(t, "period")) * time.Second,
				ColdFactor: rapid.Float64Range(1.1, 20).Draw(t, "cold factor"),
				Step:       rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "step"),
			},
			Strict: rapid.Bool().Draw(t, "strict"),
		}
		if !r.Strict && rapid.Bool().Draw(t, "fixed window") {
			r.Algorithm = flow.FixedWindow
		}
		g := newGate(t, r)
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			g.wait(time.Duration(rapid.IntRange(0, 30).Draw(t, "tenths")) * 100 * time.Millisecond)
			g.pass(rapid.IntRange(0, 50).Draw(t, "small calls"))
			n := int32(rapid.IntRange(1, int(r.Limit)).Draw(t, "tokens"))
			if g.take(n) == rule.Pass || rapid.Bool().Draw(t, "does not come again") {
				continue
			}
			after := g.window.RetryAfter(g.now, n)
			require.Positive(t, after)
			if !g.limitFalls(after) {
				g.wait(after)
				require.Equal(t, rule.Pass, g.take(n), "after %v", after)
			}
		}
	})
}

// limitFalls says whether the effective limit falls within a time if no call comes.
func (g *gate) limitFalls(within time.Duration) bool {
	limit, _, _ := g.window.Status(g.now)
	for d := time.Duration(0); d <= within; d += 100 * time.Millisecond {
		then, _, _ := g.window.Status(g.now.Add(d))
		if then < limit-1e-9 {
			return true
		}
		limit = then
	}
	return false
}

func TestLargeCallThatIsGivenBackIsSavedAgain(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{0, 300 * time.Millisecond} {
		g := newGate(t, flow.Rule{Resource: "r", Limit: 90, WarmUp: flow.WarmUp{Period: time.Hour}})
		g.take(90)
		g.wait(2500 * time.Millisecond)
		taken := g.now
		require.Equal(t, rule.Pass, g.take(90))
		g.wait(later)
		if later > 0 {
			assert.Equal(t, rule.Block, g.take(1))
		}
		g.window.GiveBack(g.compiled, taken, 90)
		g.wait(100 * time.Millisecond)
		assert.Equal(t, rule.Pass, g.take(90), "after %v", later)
		assert.Zero(t, g.pass(9))
	}
}

func TestSmallCallsDoNotTakeWhatALargeOneGaveBack(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 90, WarmUp: flow.WarmUp{Period: time.Hour}})
	g.take(90)
	g.wait(2500 * time.Millisecond)
	for range 3 {
		require.Equal(t, rule.Pass, g.take(90))
		g.window.GiveBack(g.compiled, g.now, 90)
	}
	assert.Equal(t, 30, g.pass(100))
}

func TestSavingForALargeCallEndsWhenItDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 90, WarmUp: flow.WarmUp{Period: time.Hour}})
	assert.True(t, g.window.Idle(g.now))
	assert.Equal(t, rule.Block, g.take(90))
	g.wait(3 * time.Second)
	assert.False(t, g.window.Idle(g.now), "a new one would have nothing saved")
	g.wait(time.Minute)
	assert.True(t, g.window.Idle(g.now))
	assert.Equal(t, rule.Block, g.take(90))
}

// What was saved under a higher limit is no more than its share under a lower one.
func TestTokensSavedForALargeCallFollowAChangedLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(r *flow.Rule)
		most   int // tokens in the ten windows after it
	}{
		"lower":         {func(r *flow.Rule) { r.Limit = 4.5 }, 15 + 1 + 5},
		"no warm-up":    {func(r *flow.Rule) { r.Limit, r.WarmUp = 4.5, flow.WarmUp{} }, 45 + 1},
		"blocks all":    {func(r *flow.Rule) { r.Limit = 0 }, 0},
		"twice as high": {func(r *flow.Rule) { r.Limit = 180 }, 600 + 60 + 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, flow.Rule{Resource: "r", Limit: 90, WarmUp: flow.WarmUp{Period: 24 * time.Hour}})
			g.take(90)
			g.wait(4 * time.Second)
			g.change(test.change)
			large := int32(g.rule.Limit)
			var passed int
			for range 100 {
				if large > 0 && g.take(large) == rule.Pass {
					passed += int(large)
				}
				passed += g.pass(1)
				g.wait(100 * time.Millisecond)
			}
			assert.LessOrEqual(t, passed, test.most)
		})
	}
}

// A call that can never pass is no demand that was held back, and one that is given
// back, as another rule refused it, is none either.
func TestCallsThatCannotPassDoNotKeepAResourceWarm(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(g *gate){
		"larger than the limit": func(g *gate) { require.Equal(t, rule.Block, g.take(1001)) },
		"refused elsewhere": func(g *gate) {
			require.Equal(t, rule.Pass, g.take(300))
			g.window.GiveBack(g.compiled, g.now, 300)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, warming())
			g.demand(1, 2000, 20)
			g.wait(time.Second)
			for range 1000 {
				attack(g)
				g.wait(100 * time.Millisecond)
			}
			limit, _, _ := g.window.Status(g.now)
			assert.InDelta(t, 1000.0/3, limit, 0.1)
		})
	}
}

// What is held back does not warm a resource, it only keeps it from cooling down.
func TestRefusedCallsAloneDoNotWarm(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 100, WarmUp: flow.WarmUp{Period: 10 * time.Second}})
	for range 200 {
		require.Equal(t, 1, g.pass(1))
		require.Equal(t, rule.Block, g.take(100))
		g.wait(100 * time.Millisecond)
	}
	limit, _, _ := g.window.Status(g.now)
	assert.Less(t, limit, 60.0, "10 a second have passed for 20 s, and it takes 50 s to warm it up")
}

func TestThrottleWarmsUpWithFewCallsInAStep(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit, coldFactor float64
		period            time.Duration
		tokens            int32
	}{
		{5, 10, time.Second, 1},
		{1, 3, time.Second, 1},
		{1, 3, 10 * time.Second, 1},
		{50, 100, time.Second, 1},
		{50, 100, 10 * time.Second, 1},
		{1000, 3, 10 * time.Second, 50},
		{100, 3, 10 * time.Second, 40},
		{100, 3, 10 * time.Second, 100},
		{100, 3, time.Second, 100},
	} {
		for _, maxWait := range []time.Duration{0, time.Second, 2 * time.Second, 10 * time.Second} {
			rule := throttle(test.limit, maxWait)
			rule.WarmUp = flow.WarmUp{Period: test.period, ColdFactor: test.coldFactor}
			t.Run(fmt.Sprintf("%+v, maxWait %v", test, maxWait), func(t *testing.T) {
				t.Parallel()
				l := newTestQueue(t, rule)
				rate := 3 * test.limit / float64(test.tokens)
				cold := sum(l.demand(test.tokens, rate, 1))
				assert.LessOrEqual(t, float64(cold), max(test.limit*0.4, float64(test.tokens)), "at first")
				l.demand(test.tokens, rate, int(2*test.period.Seconds())+int(3*test.coldFactor*float64(test.tokens)/test.limit)+10)
				warm := sum(l.demand(test.tokens, rate, 30))
				assert.InDelta(t, 30*test.limit, warm, max(test.limit*0.3, float64(test.tokens)))
			})
		}
	}
}

func TestThrottleThatRefusesIsNotIdle(t *testing.T) {
	t.Parallel()
	// 36 a second, at 20 a second: every second one is refused, and 18 pass.
	rule := throttle(60, 0)
	rule.WarmUp.Period = 10 * time.Second
	assert.Equal(t, 36, newTestQueue(t, rule).demand(1, 36, 20)[19])
	// At 18 a second nothing is refused.
	l := newTestQueue(t, rule)
	assert.Equal(t, 18*600, sum(l.demand(1, 18, 600)))
	limit, _, _ := l.queue.Status(l.now)
	assert.InDelta(t, 20, limit, 1)
}

// anyWarmUp draws a rule that warms up, and the tokens of its calls.
func anyWarmUp(t *rapid.T) (flow.Rule, int32) {
	rule := flow.Rule{
		Resource: "r", Limit: math.Pow(10, rapid.Float64Range(math.Log10(0.2), 4).Draw(t, "log limit")),
		Window: rapid.SampledFrom([]time.Duration{100 * time.Millisecond, 700 * time.Millisecond, time.Second, 10 * time.Second}).Draw(t, "window"),
		WarmUp: flow.WarmUp{
			Period:     rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 20 * time.Second}).Draw(t, "period"),
			ColdFactor: math.Pow(10, rapid.Float64Range(0.05, 1.3).Draw(t, "log cold factor")),
			Step:       rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "step"),
		},
	}
	fewest := int(rule.Limit/rule.Window.Seconds()/100) + 1
	return rule, int32(rapid.IntRange(fewest, max(fewest, int(rule.Limit))).Draw(t, "tokens"))
}

// warmAfter is how long overload by calls of n tokens may take to warm a resource up:
// three times the period, as whole calls may leave half of a limit unused, the time that
// five calls take at the cold rate, and some windows and steps.
func warmAfter(rule flow.Rule, n int32) time.Duration {
	perSecond := rule.Limit / rule.Window.Seconds()
	return 3*rule.WarmUp.Period + 5*rule.Window + 5*rule.WarmUp.Step + seconds(5*float64(n)*rule.WarmUp.ColdFactor/perSecond)
}

// Whatever the rule and however large its calls, under overload as much passes in the
// end as the limit has room for in whole calls, and never more than the limits allow.
func TestWindowUnderOverloadWarmsUpWithinItsEffectiveLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule, n := anyWarmUp(t)
		switch rapid.IntRange(0, 2).Draw(t, "algorithm") {
		case 1:
			rule.Strict = true
		case 2:
			rule.Algorithm = flow.FixedWindow
		}
		o := newOverload(t, rule, n, rapid.Float64Range(2, 4).Draw(t, "overload"))
		o.run(warmAfter(rule, n))
		calls := math.Floor(rule.Limit/float64(n) + 1e-9)
		each := rule.Window + o.apart // whoever comes next finds room
		if rule.Algorithm != flow.FixedWindow {
			each += o.bucket
		}
		if n == 1 {
			calls = rule.Limit
		}
		each += o.apart
		const windows = 12
		span := time.Duration(windows * max(1, math.Ceil(3*float64(n)/rule.Limit)) * float64(each))
		want := calls * float64(n) * float64(span) / float64(each)
		passed := o.run(span)
		require.GreaterOrEqual(t, float64(passed), 0.9*want-2*float64(n), "%v in windows of %d calls", span, int(calls))
	})
}

// overload is a window and more calls than it lets pass.
type overload struct {
	*gate
	n      int32
	apart  time.Duration
	bucket time.Duration
	span   int

	passed  map[int64]int64 // tokens, by bucket
	highest float64         // limit so far
	ahead   float64         // tokens by which more has passed than at the effective limits of the buckets
	last    int64
}

func newOverload(t *rapid.T, rule flow.Rule, n int32, times float64) *overload {
	o := &overload{gate: newGate(t, rule), n: n, passed: map[int64]int64{}, span: 1}
	o.apart = seconds(float64(n) / times * rule.Window.Seconds() / rule.Limit)
	o.bucket = o.rule.Window
	if o.rule.Buckets > 0 {
		o.bucket, o.span = o.rule.Window/time.Duration(o.rule.Buckets), o.rule.Buckets
	}
	if rule.Strict {
		o.span++
	}
	o.last = int64(o.now) / int64(o.bucket)
	return o
}

func (o *overload) run(d time.Duration) (passed int64) {
	for end := o.now.Add(d); o.now < end; o.wait(o.apart) {
		if o.take(o.n) != rule.Pass {
			continue
		}
		passed += int64(o.n)
		o.check(o.t, o.now)
	}
	return passed
}

func (o *overload) check(t require.TestingT, now clock.Instant) {
	bucket := int64(now) / int64(o.bucket)
	limit, _, _ := o.window.Status(now)
	o.passed[bucket] += int64(o.n)
	var held int64
	for b := bucket - int64(o.span) + 1; b <= bucket; b++ {
		held += o.passed[b]
	}
	require.LessOrEqual(t, held, int64(math.Ceil(o.rule.Limit-1e-9)), "a window never holds more than the limit")
	o.highest = max(o.highest, limit)
	o.ahead = max(0, o.ahead-o.highest/float64(o.span)*float64(bucket-o.last)) + float64(o.n)
	o.last = bucket
	require.LessOrEqual(t, o.ahead, (o.highest+float64(o.n)+1)*(1+1e-9), "on average, no more passes than at the effective limit")
}

func TestThrottleGetsWarmUnderOverloadAndKeepsItsDistance(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule, n := anyWarmUp(t)
		rule.Algorithm = flow.Throttle
		perSecond := rule.Limit / rule.Window.Seconds()
		spacing := seconds(float64(n) / perSecond)
		rule.MaxWait = min(time.Minute, time.Duration(rapid.Float64Range(0, 10).Draw(t, "maxWait in spacings")*float64(spacing)))
		times := rapid.Float64Range(2, 4).Draw(t, "overload")
		if rapid.Bool().Draw(t, "no wait") {
			rule.MaxWait = 0
		}
		l := newTestQueue(t, rule)
		calls := func(d time.Duration) {
			for end := l.now.Add(d); l.now < end; {
				l.arrive(n)
				l.moveTo(l.now.Sub(epoch) + seconds(float64(n)/times/perSecond))
			}
		}
		calls(warmAfter(rule, n) + rule.MaxWait)
		first := len(l.passes) - 1
		calls(max(20*spacing, 5*time.Second))
		mean := (l.passes[len(l.passes)-1].at - l.passes[first].at) / time.Duration(len(l.passes)-1-first)
		most := spacing
		if rule.MaxWait < spacing { // whoever comes next may come late
			most += seconds(float64(n) / times / perSecond)
		}
		require.LessOrEqual(t, mean.Seconds(), 1.05*most.Seconds())
		for i := 1; i < len(l.passes); i++ {
			require.GreaterOrEqual(t, l.passes[i].at-l.passes[i-1].at, spacing-time.Microsecond)
		}
	})
}

// Less than the cold rate, of which nothing is refused, never warms a resource up.
func TestLoadBelowTheColdRateLeavesAResourceCold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule, _ := anyWarmUp(t)
		perSecond := rule.Limit / rule.Window.Seconds()
		judged := max(rule.Window, rule.WarmUp.Step).Seconds()
		rate := 0.8 * perSecond / rule.WarmUp.ColdFactor // calls of one token
		if tokens := math.Floor(perSecond * judged / rule.WarmUp.ColdFactor); tokens >= 1 {
			rate = (math.Ceil(tokens) - 1 + 0.001) / judged
		}
		depth := 2 * perSecond * rule.WarmUp.Period.Seconds() / (1 + rule.WarmUp.ColdFactor)
		if rate < 1e-3 || rate > 2000 || depth < 10*(1+rate*judged) {
			return // a few tokens are all the difference between cold and warm
		}
		g := newGate(t, rule)
		for range 400 {
			g.take(1)
			g.wait(seconds(1 / rate))
		}
		limit, _, _ := g.window.Status(g.now)
		curve := rule.Limit / rule.WarmUp.ColdFactor
		assert.LessOrEqual(t, limit, max(curve*1.5, curve+0.2*(rule.Limit-curve)))
	})
}
