package flow_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWindowCheckTakesNothing(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(5))
	check := func(n int32) rule.Decision { return g.window.Check(g.compiled, g.now, n) }
	for range 10 {
		assert.Equal(t, rule.Pass, check(5))
		assert.Equal(t, rule.Block, check(6))
	}
	assert.Equal(t, 5, g.pass(9))
	assert.Equal(t, rule.Block, check(1))
	g.moveTo(time.Second)
	assert.Equal(t, rule.Pass, check(5), "the window has moved on")
	assert.Equal(t, rule.Stale, g.window.Check(g.compiled, g.now.Add(-time.Second), 1))
	old := g.compiled
	g.change(func(r *flow.Rule) { r.Limit = 7 })
	assert.Equal(t, rule.Pass, check(7), "by the newer version")
	assert.Equal(t, rule.Stale, g.window.Check(old, g.now, 1))
}

func TestWindowCountsWhatPassedElsewhere(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(5))
	check := func(n int32) rule.Decision { return g.window.Check(g.compiled, g.now, n) }
	g.window.Count(g.compiled, g.now, 3)
	assert.Equal(t, rule.Pass, check(2))
	assert.Equal(t, rule.Block, check(3))
	g.window.Count(g.compiled, g.now, 30)
	_, remaining, reset := g.window.Status(g.now)
	assert.Zero(t, remaining)
	assert.Equal(t, time.Second, reset)
	assert.Equal(t, time.Second, g.window.RetryAfter(g.now, 1))
	g.moveTo(900 * time.Millisecond)
	assert.Equal(t, rule.Block, check(1))
	g.moveTo(time.Second)
	assert.Equal(t, rule.Pass, check(5), "it leaves with its bucket")
}

func TestWindowCountsAlsoBeyondTheLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(5))
	old, early := g.compiled, g.now
	g.moveTo(10 * time.Second)
	g.change(func(r *flow.Rule) { r.Limit = 6 })
	assert.Equal(t, 1, g.pass(1))
	g.window.Count(g.compiled, early, 1)
	g.window.Count(old, g.now, 1)
	g.window.Count(old, early, 1)
	assert.Equal(t, 2, g.pass(9), "what came too late counts now")

	g.change(func(r *flow.Rule) { r.Buckets = 5 })
	g.moveTo(20 * time.Second)
	g.window.Count(g.compiled, g.now, 4) // the first to bring the newer version
	assert.Equal(t, 2, g.pass(9))

	for range 10 {
		g.window.Count(g.compiled, g.now, math.MaxInt32)
	}
	assert.Zero(t, g.pass(9))
	g.moveTo(21 * time.Second)
	assert.Equal(t, 6, g.pass(9))
}

func TestWindowRetryAfterOfAnOverfullWindow(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(5))
	g.window.Count(g.compiled, g.now, 3)
	g.moveTo(500 * time.Millisecond)
	g.window.Count(g.compiled, g.now, 8)
	assert.Equal(t, rule.Block, g.take(1))
	assert.Equal(t, time.Second, g.window.RetryAfter(g.now, 1), "the first three are not enough")
	g.moveTo(1500 * time.Millisecond)
	assert.Equal(t, rule.Pass, g.take(1))
}

// Whatever is counted and when, it has a slot for what the window does not hold.
func TestWindowCountBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const limit = 10
		b := &book{gate: newGate(t, flow.Rule{
			Resource: "r", Limit: limit, Buckets: rapid.SampledFrom([]int{1, 5, 10}).Draw(t, "buckets"),
		})}
		t.Repeat(map[string]func(*rapid.T){
			"count": func(t *rapid.T) {
				n := rapid.Int32Range(1, 8).Draw(t, "n")
				b.window.Count(b.compiled, b.now, n)
				b.passages = append(b.passages, passage{b.now, b.compiled, int64(n)})
			},
			"check": func(t *rapid.T) {
				n := rapid.Int32Range(1, 4).Draw(t, "n")
				want := rule.Block
				if b.held()+int64(n) <= limit {
					want = rule.Pass
				}
				assert.Equal(t, want, b.window.Check(b.compiled, b.now, n))
			},
			"time passes": b.letTimePass,
		})
	})
}

// Of what is counted while buckets roll over and rules change, nothing is lost.
func TestWindowCountsEverythingWhateverTheInterleaving(t *testing.T) {
	t.Parallel()
	const callers, calls = 64, 300
	rule := fixed(flow.MaxLimit, 24*time.Hour)
	for name, step := range map[string]time.Duration{"one bucket": 0, "many buckets": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := rule
			if step > 0 { // all of the time of the test is in one window
				rule = flow.Rule{Resource: "r", Limit: flow.MaxLimit, Window: 100 * time.Second, Buckets: 1000}
			}
			var compiled atomic.Pointer[flow.Compiled]
			compiled.Store(compile(t, rule, 1))
			w := flow.NewWindow(compiled.Load(), epoch)
			var now atomic.Int64
			var version atomic.Uint64
			version.Store(1)
			var calling sync.WaitGroup
			for c := range callers {
				calling.Go(func() {
					for i := range calls {
						at := epoch.Add(time.Duration(now.Add(int64(step))))
						w.Check(compiled.Load(), at, 1)
						w.Count(compiled.Load(), at, 1)
						if c == 0 && i%10 == 0 {
							rule := rule
							rule.Limit -= float64(i)
							compiled.Store(compile(t, rule, version.Add(1)))
						}
					}
				})
			}
			calling.Wait()
			last := compile(t, rule, version.Add(1))
			end := epoch.Add(time.Duration(now.Load()))
			w.Adopt(last, end)
			_, remaining, _ := w.Status(end)
			assert.Equal(t, int64(flow.MaxLimit-callers*calls), remaining)
		})
	}
}
