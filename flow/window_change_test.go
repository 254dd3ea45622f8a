package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

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

func TestWindowAdoptsANewVersionAtOnce(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	g.change(func(r *flow.Rule) { r.Limit = 3 })
	g.window.Adopt(g.compiled, g.now)
	limit, remaining, _ := g.window.Status(g.now)
	assert.InDelta(t, 3, limit, 1e-9)
	assert.Equal(t, int64(3), remaining)
}

func TestWindowAnswersAnOlderVersionWithStale(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(10))
	g.moveTo(550 * time.Millisecond)
	assert.Equal(t, 1, g.pass(1))
	assert.Equal(t, epoch.Add(500*time.Millisecond), g.window.LaterThan(epoch))

	g.moveTo(510 * time.Millisecond)
	assert.Equal(t, rule.Pass, g.take(1), "earlier, but of the same bucket")
	g.moveTo(499 * time.Millisecond)
	assert.Equal(t, rule.Stale, g.take(1), "of an earlier bucket")
	assert.Equal(t, rule.Stale, g.take(100), "even if it could not pass")

	g.moveTo(600 * time.Millisecond)
	old := g.compiled
	g.change(func(r *flow.Rule) { r.Limit = 5 })
	assert.Equal(t, 3, g.pass(9))
	assert.Equal(t, rule.Stale, g.window.Take(old, g.now, 1), "a version that is no longer in force")
	g.window.Adopt(old, g.now)
	assert.Zero(t, g.pass(9), "and they are not adopted again")

	g.change(func(r *flow.Rule) { r.Limit = 100 })
	g.moveTo(400 * time.Millisecond)
	assert.Equal(t, rule.Stale, g.take(1), "a newer version, but of an earlier bucket")
}

func TestWindowKeepsItsCountOverChangedBuckets(t *testing.T) {
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
