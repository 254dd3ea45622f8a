package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

func TestWindowTimelines(t *testing.T) {
	t.Parallel()
	type step struct {
		at    float64 // seconds
		calls int
		want  int // of them pass
	}
	tests := map[string]struct {
		rule  flow.Rule
		steps []step
	}{
		"a full window frees up bucket by bucket": {reject(5), []step{
			{0.05, 2, 2}, {0.15, 9, 3}, {0.95, 1, 0}, {1.0, 9, 2}, {1.1, 9, 3}, {1.2, 9, 0},
		}},
		"buckets are those of the calendar, not of the first call": {reject(5), []step{
			{0.99, 5, 5}, {1.89, 1, 0}, {1.9, 9, 5},
		}},
		"one bucket is a fixed window": {flow.Rule{Resource: "r", Limit: 5, Buckets: 1}, []step{
			{0.99, 9, 5}, {1.0, 9, 5}, {1.99, 9, 0}, {2.0, 9, 5},
		}},
		"a long idle window is empty": {reject(5), []step{
			{0, 9, 5}, {86_400, 9, 5},
		}},
		"a window of a minute": {flow.Rule{Resource: "r", Limit: 5, Window: time.Minute}, []step{
			{0, 9, 5}, {59.9, 1, 0}, {60, 9, 5},
		}},
		"strict frees up one bucket later": {flow.Rule{Resource: "r", Limit: 5, Strict: true}, []step{
			{0.05, 9, 5}, {1.0, 1, 0}, {1.09, 1, 0}, {1.1, 9, 5},
		}},
		"a limit below one begins with a token": {reject(0.5), []step{
			{0, 9, 1}, {1.9, 9, 0}, {2, 9, 1}, {3.9, 9, 0}, {4, 9, 1}, {60, 9, 1}, {60.9, 9, 0},
		}},
		"a fraction adds up": {reject(2.5), []step{
			{0, 9, 2}, {1, 9, 2}, {2, 9, 3}, {3, 9, 2}, {4, 9, 3},
		}},
		"nothing": {reject(0), []step{
			{0, 9, 0}, {0.5, 9, 0}, {100, 9, 0},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.rule)
			for _, s := range test.steps {
				g.moveTo(seconds(s.at))
				assert.Equal(t, s.want, g.pass(s.calls), "at %v s", s.at)
			}
		})
	}
}

func TestWindowWeighsTokens(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	assert.Equal(t, flow.Passed, g.take(7))
	assert.Equal(t, flow.Refused, g.take(4), "one token too many")
	assert.Equal(t, flow.Passed, g.take(3), "a refusal takes nothing")
	assert.Equal(t, flow.Refused, g.take(1))
	g.moveTo(time.Second)
	assert.Equal(t, flow.Refused, g.take(11), "more than there ever is")
	assert.Equal(t, flow.Passed, g.take(10))
}

func TestWindowOfTheLargestLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(flow.MaxLimit))
	assert.Equal(t, flow.Refused, g.take(math.MaxInt32))
	assert.Equal(t, flow.Passed, g.take(flow.MaxLimit-1))
	assert.Equal(t, 1, g.pass(3))
	g.change(func(r *flow.Rule) { r.Limit = 1 })
	assert.Equal(t, flow.Refused, g.take(1))
	g.moveTo(time.Second)
	assert.Equal(t, 1, g.pass(3))
}

func TestWindowBeforeTheEpochOfClocks(t *testing.T) {
	t.Parallel()
	fine := warming()
	fine.WarmUp.Step = 100 * time.Millisecond
	for name, rule := range map[string]flow.Rule{"plain": reject(333), "strict": {Resource: "r", Limit: 333, Strict: true}, "warming up": fine} {
		terms := compile(t, rule, 1)
		now := clock.Instant(0).Add(-time.Hour)
		w := flow.NewWindow(terms, now)
		for range 20 {
			passed := passUntilRefused(w, terms, now)
			assert.InDelta(t, 333, passed, 20, name)
			now = now.Add(2 * time.Second)
		}
	}
}

func TestTermsKnowTheirRule(t *testing.T) {
	t.Parallel()
	rule := reject(5).WithDefaults()
	assert.Equal(t, rule, flow.Compile(rule, 1).Rule())
}

func TestWindowGiveBack(t *testing.T) {
	t.Parallel()
	t.Run("is room at once", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		assert.Equal(t, 5, g.pass(9))
		g.window.GiveBack(g.terms, g.now, 2)
		assert.Equal(t, 2, g.pass(9))
	})
	t.Run("is room in a later bucket", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		taken := g.now
		assert.Equal(t, 5, g.pass(9))
		g.moveTo(500 * time.Millisecond)
		assert.Zero(t, g.pass(1))
		g.window.GiveBack(g.terms, taken, 2)
		assert.Equal(t, 2, g.pass(9))
		g.moveTo(time.Second)
		assert.Equal(t, 3, g.pass(9), "the other two came half a second later")
	})
	t.Run("of what has left the window is nothing", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		taken := g.now
		assert.Equal(t, 5, g.pass(9))
		g.moveTo(time.Second)
		assert.Equal(t, 5, g.pass(9))
		g.window.GiveBack(g.terms, taken, 5)
		assert.Zero(t, g.pass(1))
	})
	t.Run("works under newer terms", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		old, taken := g.terms, g.now
		assert.Equal(t, 5, g.pass(9))
		g.change(func(r *flow.Rule) { r.Limit = 6 })
		assert.Equal(t, 1, g.pass(9))
		g.window.GiveBack(old, taken, 2)
		assert.Equal(t, 2, g.pass(9))
	})
	t.Run("of a saved token saves it again", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(0.5))
		taken := g.now
		assert.Equal(t, 1, g.pass(9))
		g.moveTo(300 * time.Millisecond)
		assert.Zero(t, g.pass(1))
		g.window.GiveBack(g.terms, taken, 1)
		assert.Equal(t, 1, g.pass(9))
	})
	t.Run("of any token is room while a saved one is out", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(2.5))
		g.moveTo(2 * time.Second)
		taken := g.now
		assert.Equal(t, 2, g.pass(2))
		g.moveTo(2500 * time.Millisecond)
		assert.Equal(t, 1, g.pass(9), "the saved one")
		g.window.GiveBack(g.terms, taken, 1)
		assert.Equal(t, 1, g.pass(9))
	})
}

func TestWindowUnderAChangedLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	assert.Equal(t, 8, g.pass(8))
	g.change(func(r *flow.Rule) { r.Limit = 3 })
	assert.Zero(t, g.pass(9), "eight are more than three")
	g.moveTo(500 * time.Millisecond)
	assert.Zero(t, g.pass(9))
	g.change(func(r *flow.Rule) { r.Limit = 10 })
	assert.Equal(t, 2, g.pass(9), "what was counted stays counted")
	g.change(func(r *flow.Rule) { r.Limit = 3 })
	g.moveTo(time.Second)
	assert.Equal(t, 1, g.pass(9), "eight have left, two are in it")
}

func TestWindowAdoptsTermsAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	g.change(func(r *flow.Rule) { r.Limit = 3 })
	g.window.Adopt(g.terms, g.now)
	ceiling, room, _ := g.window.Status(g.now)
	assert.InDelta(t, 3, ceiling, 1e-9)
	assert.Equal(t, int64(3), room)
}

func TestWindowKnowsWhatIsOutdated(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	g.moveTo(550 * time.Millisecond)
	assert.Equal(t, 1, g.pass(1))
	assert.Equal(t, epoch.Add(500*time.Millisecond), g.window.Opened())

	g.moveTo(510 * time.Millisecond)
	assert.Equal(t, flow.Passed, g.take(1), "earlier, but of the same bucket")
	g.moveTo(499 * time.Millisecond)
	assert.Equal(t, flow.Outdated, g.take(1), "of an earlier bucket")
	assert.Equal(t, flow.Outdated, g.take(100), "even if it could not pass")

	g.moveTo(600 * time.Millisecond)
	old := g.terms
	g.change(func(r *flow.Rule) { r.Limit = 5 })
	assert.Equal(t, 3, g.pass(9))
	assert.Equal(t, flow.Outdated, g.window.Take(old, g.now, 1), "terms that are no longer in force")
	g.window.Adopt(old, g.now)
	assert.Zero(t, g.pass(9), "and they are not adopted again")

	g.change(func(r *flow.Rule) { r.Limit = 100 })
	g.moveTo(400 * time.Millisecond)
	assert.Equal(t, flow.Outdated, g.take(1), "newer terms, but of an earlier bucket")
}

func TestWindowGeometryChanges(t *testing.T) {
	t.Parallel()
	type step struct {
		at   float64 // seconds
		want int     // of many calls pass
	}
	tests := map[string]struct {
		from   flow.Rule
		change func(r *flow.Rule)
		steps  []step
	}{
		"more buckets": {
			reject(5), func(r *flow.Rule) { r.Buckets = 20 },
			// Taken in a bucket that ended at 0.1 s: gone once the one from
			// 0.05 s on has left.
			[]step{{0.5, 0}, {1.04, 0}, {1.05, 5}, {2.049, 0}, {2.05, 5}},
		},
		"fewer buckets": {
			reject(5), func(r *flow.Rule) { r.Buckets = 2 },
			[]step{{0.5, 0}, {0.99, 0}, {1.0, 5}, {1.99, 0}, {2, 5}},
		},
		"a longer window": {
			reject(5), func(r *flow.Rule) { r.Window = 10 * time.Second },
			[]step{{0.5, 0}, {9.99, 0}, {10, 5}},
		},
		"a shorter window": {
			reject(5), func(r *flow.Rule) { r.Window = 100 * time.Millisecond },
			[]step{{0.5, 5}, {0.59, 0}, {0.6, 5}},
		},
		"strict": {
			reject(5), func(r *flow.Rule) { r.Strict = true },
			[]step{{0.5, 0}, {1.09, 0}, {1.1, 5}, {2.19, 0}, {2.2, 5}},
		},
		"no longer strict": {
			flow.Rule{Resource: "r", Limit: 5, Strict: true},
			func(r *flow.Rule) { r.Strict = false },
			[]step{{0.5, 0}, {0.99, 0}, {1.0, 5}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.from)
			assert.Equal(t, 5, g.pass(9))
			g.change(test.change)
			for _, s := range test.steps {
				g.moveTo(seconds(s.at))
				assert.Equal(t, s.want, g.pass(9), "at %v s", s.at)
			}
		})
	}
}

// A token that was taken before a change of geometry may be given back in a
// later bucket than the one it was moved to.
func TestWindowGiveBackOverAChangeOfGeometry(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 5, Buckets: 1})
	old := g.terms
	g.moveTo(200 * time.Millisecond)
	taken := g.now
	assert.Equal(t, 5, g.pass(9))
	g.moveTo(300 * time.Millisecond)
	g.change(func(r *flow.Rule) { r.Buckets = 10 })
	assert.Zero(t, g.pass(1))

	g.moveTo(950 * time.Millisecond)
	assert.Zero(t, g.pass(1))
	g.window.GiveBack(old, taken, 2)
	first := g.pass(9)
	assert.LessOrEqual(t, first, 2, "three are in the window")
	g.moveTo(1400 * time.Millisecond)
	assert.LessOrEqual(t, first+g.pass(9), 5, "the three have left")
}

func TestWindowRetryAfter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule   flow.Rule
		before []int // tokens taken bucket by bucket, the last in the present one
		n      int32
		want   time.Duration
	}{
		"when the only bucket leaves":      {reject(5), []int{5}, 1, time.Second},
		"when the first bucket leaves":     {reject(5), []int{2, 0, 3}, 1, 800 * time.Millisecond},
		"when the first that holds any":    {reject(5), []int{0, 0, 2, 0, 3}, 1, 800 * time.Millisecond},
		"when enough have left":            {reject(5), []int{1, 1, 3}, 3, time.Second},
		"all of it":                        {reject(5), []int{1, 4}, 5, time.Second},
		"never: more than the limit":       {reject(5), []int{5}, 6, 0},
		"never: nothing is allowed":        {reject(0), []int{0}, 1, 0},
		"strict waits one bucket more":     {flow.Rule{Resource: "r", Limit: 5, Strict: true}, []int{5}, 1, 1100 * time.Millisecond},
		"a saved token":                    {reject(0.5), []int{1}, 1, 2 * time.Second},
		"a saved token, a while later":     {reject(0.5), []int{1, 0, 0, 0, 0}, 1, 1600 * time.Millisecond},
		"what one token less makes enough": {reject(5), []int{2, 0}, 5, 900 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.rule)
			for i, n := range test.before {
				g.moveTo(time.Duration(i) * g.bucketLength())
				assert.Equal(t, n, g.pass(n))
			}
			assert.Equal(t, flow.Refused, g.take(test.n))
			assert.Equal(t, test.want, g.window.RetryAfter(test.n))
		})
	}
}

func TestWindowRetryAfterIsHonestWhileASavedTokenIsOut(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(2.5))
	for i, d := range []float64{2.5, 2.7, 3.0} { // the third takes the saved one
		g.moveTo(seconds(d))
		assert.Equal(t, 1, g.pass(1), "call %d", i)
	}
	assert.Equal(t, flow.Refused, g.take(1))
	g.wait(g.window.RetryAfter(1))
	assert.Equal(t, flow.Passed, g.take(1))
}

func TestWindowStatus(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(5))
	status := func() []any {
		ceiling, room, reset := g.window.Status(g.now)
		return []any{ceiling, room, reset}
	}
	assert.Equal(t, int64(5), status()[1])

	g.moveTo(50 * time.Millisecond)
	g.pass(3)
	assert.Equal(t, []any{5.0, int64(2), 950 * time.Millisecond}, status())
	g.moveTo(250 * time.Millisecond)
	assert.Equal(t, []any{5.0, int64(2), 750 * time.Millisecond}, status(), "without a call in between")
	g.pass(9)
	assert.Equal(t, []any{5.0, int64(0), 750 * time.Millisecond}, status())
	before := status()
	assert.Equal(t, before, status(), "asking changes nothing")

	g.moveTo(time.Second)
	assert.Equal(t, []any{5.0, int64(3), 200 * time.Millisecond}, status(), "three have left, the other two will")
	g.moveTo(time.Minute)
	assert.Equal(t, int64(5), status()[1])
	g.moveTo(time.Second)
	assert.Equal(t, 3, g.pass(9), "looking ahead did not open a bucket")

	g.change(func(r *flow.Rule) { r.Limit = 1 })
	g.window.Adopt(g.terms, g.now)
	assert.Equal(t, int64(0), status()[1], "room is never below zero")
}

func TestWindowTakeAllocatesNothing(t *testing.T) {
	for name, limit := range map[string]float64{"passed": flow.MaxLimit, "refused": 0, "both": 3, "warm-up": 2.5} {
		rule := reject(limit)
		if name == "warm-up" {
			rule.WarmUp.Period = 10 * time.Second
		}
		g := newGate(t, rule)
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			g.wait(7 * time.Millisecond)
			if g.take(1) == flow.Refused {
				g.window.RetryAfter(1)
			}
			if g.take(1) == flow.Passed {
				g.window.GiveBack(g.terms, g.now, 1)
			}
		}), name)
	}
}
