package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// fixed returns a rule with a fixed window.
func fixed(limit float64, window time.Duration) flow.Rule {
	return flow.Rule{Resource: "r", Limit: limit, Window: window, Algorithm: flow.FixedWindow}
}

func TestFixedWindowTimelines(t *testing.T) {
	t.Parallel()
	type step struct {
		at    time.Time
		calls int
		want  int // of them pass
	}
	at := func(text string) time.Time {
		parsed, err := time.Parse("2006-01-02 15:04:05.999999999", text)
		assert.NoError(t, err)
		return parsed
	}
	tests := map[string]struct {
		rule  flow.Rule
		steps []step
	}{
		"a second, twice the limit around its boundary": {fixed(5, time.Second), []step{
			{at("2026-03-01 12:00:00.999"), 9, 5},
			{at("2026-03-01 12:00:01"), 9, 5},
			{at("2026-03-01 12:00:01.999999999"), 9, 0},
			{at("2026-03-01 12:00:02"), 9, 5},
		}},
		"a millisecond": {fixed(3, time.Millisecond), []step{
			{at("2026-03-01 12:00:00.0019"), 9, 3},
			{at("2026-03-01 12:00:00.001999999"), 9, 0},
			{at("2026-03-01 12:00:00.002"), 9, 3},
			{at("2026-03-01 12:00:00.005"), 2, 2},
			{at("2026-03-01 12:00:00.0055"), 2, 1},
		}},
		"a day, from midnight to midnight in UTC": {fixed(5, 24*time.Hour), []step{
			{at("2026-03-01 23:59:59.999"), 9, 5},
			{at("2026-03-02 00:00:00"), 3, 3},
			{at("2026-03-02 23:59:59.999999999"), 9, 2},
			{at("2026-03-03 00:00:00"), 9, 5},
		}},
		"seven seconds since the epoch": {fixed(5, 7*time.Second), []step{
			{time.Unix(7*300_000_000, 0), 3, 3}, {time.Unix(7*300_000_001, -1), 9, 2}, {time.Unix(7*300_000_001, 0), 9, 5},
		}},
		"a minute with a fraction": {fixed(2.5, time.Minute), []step{
			{at("2026-03-01 12:00:59"), 9, 3},
			{at("2026-03-01 12:01:00"), 9, 2},
			{at("2026-03-01 12:02:00"), 9, 3},
			{at("2026-03-01 12:03:00"), 9, 2},
			{at("2026-03-01 12:04:00"), 9, 3},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, test.rule)
			for _, s := range test.steps {
				g.now = clock.Instant(s.at.UnixNano())
				assert.Equal(t, s.want, g.pass(s.calls), "at %v", s.at)
			}
		})
	}
}

// No window of the calendar sees more than the limit, and no call is refused
// that its window has room for.
func TestFixedWindowBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 12).Draw(t, "limit")
		window := rapid.SampledFrom([]time.Duration{
			time.Millisecond, 7 * time.Second, 12345 * time.Microsecond, time.Hour, 24 * time.Hour,
		}).Draw(t, "window")
		g := newGate(t, fixed(float64(limit), window))
		counts := map[int64]int64{} // by window
		type passage struct {
			at clock.Instant
			n  int32
		}
		var passages []passage
		present := func() int64 { return int64(g.now) / int64(window) }
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int32Range(1, 4).Draw(t, "n")
				want := rule.Block
				if counts[present()]+int64(n) <= limit {
					want = rule.Pass
					counts[present()] += int64(n)
					passages = append(passages, passage{g.now, n})
				}
				assert.Equal(t, want, g.window.Check(g.compiled, g.now, n))
				assert.Equal(t, want, g.take(n))
			},
			"give back": func(t *rapid.T) {
				if len(passages) == 0 {
					t.Skip("nothing passed")
				}
				i := rapid.IntRange(0, len(passages)-1).Draw(t, "which")
				p := passages[i]
				passages = append(passages[:i:i], passages[i+1:]...)
				counts[int64(p.at)/int64(window)] -= int64(p.n)
				g.window.GiveBack(g.compiled, p.at, p.n)
			},
			"time passes": func(t *rapid.T) {
				g.wait(time.Duration(rapid.Int64Range(0, int64(2*window)).Draw(t, "time")))
			},
			"another limit": func(t *rapid.T) {
				limit = rapid.Int64Range(0, 12).Draw(t, "limit")
				g.change(func(r *flow.Rule) { r.Limit = float64(limit) })
			},
		})
	})
}

// A fixed window is a sliding one of one bucket, also while it warms up.
func TestFixedWindowEqualsASlidingOneOfOneBucket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := fixed(rapid.Float64Range(0.1, 50).Draw(t, "limit"), rapid.SampledFrom([]time.Duration{
			100 * time.Millisecond, time.Second, 5 * time.Second,
		}).Draw(t, "window"))
		if rapid.Bool().Draw(t, "warms up") {
			rule.WarmUp = flow.WarmUp{
				Period: 10 * time.Second,
				Step:   rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "step"),
			}
		}
		sliding := rule
		sliding.Algorithm, sliding.Buckets = flow.SlidingWindow, 1
		one, other := newGate(t, rule), newGate(t, sliding)
		for range 200 {
			d := time.Duration(rapid.Int64Range(0, int64(rule.Window/5)).Draw(t, "wait"))
			one.wait(d)
			other.wait(d)
			assert.Equal(t, other.pass(3), one.pass(3))
		}
	})
}

func TestFixedWindowKeepsItsCountOverAChangeOfAlgorithm(t *testing.T) {
	t.Parallel()
	g := newGate(t, fixed(10, time.Second))
	g.moveTo(1900 * time.Millisecond)
	assert.Equal(t, 4, g.pass(4))
	g.change(func(r *flow.Rule) { r.Algorithm, r.Buckets = flow.SlidingWindow, 10 })
	assert.Equal(t, 6, g.pass(20))
	g.moveTo(2500 * time.Millisecond)
	assert.Zero(t, g.pass(20), "all of it is in the last second")
	g.change(func(r *flow.Rule) { r.Algorithm, r.Buckets = flow.FixedWindow, 0 })
	g.moveTo(3 * time.Second)
	assert.Equal(t, 10, g.pass(20))
}

func TestFixedWindowOfTheLargestLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t, fixed(flow.MaxLimit, time.Millisecond))
	for range 3 {
		assert.Equal(t, rule.Block, g.take(math.MaxInt32))
		assert.Equal(t, rule.Pass, g.take(flow.MaxLimit))
		assert.Equal(t, rule.Block, g.take(1))
		g.wait(time.Millisecond)
	}
}
