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

// drawSignal moves the signal and returns the limit that follows: whole tokens, 45 for
// each hundredth of the memory.
func drawSignal(t *rapid.T, signal *oneSignal) int64 {
	percent := rapid.SampledFrom([]int{-1, 0, 70, 71, 73, 77, 80, 86, 89, 90, 100}).Draw(t, "memory, percent")
	if percent < 0 {
		signal.Store(math.NaN())
		return 1000
	}
	signal.Store(float64(percent) / 100)
	return 1000 - 45*int64(max(0, min(percent, 90)-70))
}

// Whatever the signal does: tokens pass as long as those of the window and they are no
// more than the limit that the last sample brought, and no longer.
func TestWindowThatFollowsASignalBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]flow.Rule{
			reject(1000),
			{Resource: "r", Limit: 1000, Strict: true},
			{Resource: "r", Limit: 1000, Buckets: 1},
			{Resource: "r", Limit: 1000, Window: time.Minute},
		}).Draw(t, "rule")
		g, signal := newFollowingGate(t, memory(r, 100))
		b := &book{gate: g}
		limit := int64(1000)
		tokens := rapid.SampledFrom([]int32{1, 1, 7, 45, 100, 300})
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				shown, remaining, _ := b.window.Status(b.now)
				assert.InDelta(t, limit, shown, 1e-6)
				assert.Equal(t, max(0, limit-b.held()), remaining)
			},
			"signal":      func(t *rapid.T) { limit = drawSignal(t, signal) },
			"time passes": func(t *rapid.T) { b.wait(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond) },
			"give back":   b.giveBack,
			"take": func(t *rapid.T) {
				n := tokens.Draw(t, "n")
				want := rule.Block
				if b.held()+int64(n) <= limit {
					want = rule.Pass
				}
				assert.Equal(t, want, b.window.Check(b.compiled, b.now, n))
				assert.Equal(t, want, b.take(n))
			},
			"retry": func(t *rapid.T) {
				n := tokens.Draw(t, "n")
				if b.take(n) == rule.Pass {
					t.Skip("it is not refused")
				}
				wait := b.window.RetryAfter(b.now, n)
				if int64(n) > limit {
					assert.Zero(t, wait, "nobody knows when")
					return
				}
				b.wait(wait)
				assert.Equal(t, rule.Pass, b.take(n), "after %v", wait)
			},
		})
	})
}

// A queue whose limit follows a signal behaves like one whose rule is reloaded with each
// limit.
func TestQueueThatFollowsASignalBehavesLikeAReloadedOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]flow.Rule{
			throttle(1000, 2*time.Second), throttle(1000, 0),
			{Resource: "r", Limit: 1000, Algorithm: flow.TokenBucket, Burst: 50, MaxWait: 2 * time.Second},
			{Resource: "r", Limit: 1000, Algorithm: flow.TokenBucket, Burst: 50, Overdraft: true},
			{Resource: "r", Limit: 1000, Algorithm: flow.TokenBucket, MaxWait: time.Second, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
			{Resource: "r", Limit: 1000, Algorithm: flow.Throttle, MaxWait: time.Second, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		}).Draw(t, "rule")
		r.Window = rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "window")
		r = flow.Kind().WithDefaults(r)
		compiled, signal := following(t, memory(r, 100))
		p := &queuePair{now: epoch, follows: flow.NewQueue(compiled, epoch), compiled: compiled, reloaded: newTestQueue(t, r)}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { p.compare(t) },
			"signal": func(t *rapid.T) {
				p.compare(t)
				limit := drawSignal(t, signal)
				p.follows.Status(p.now) // looks at the signal
				p.reloaded.now = p.now
				if before := p.reloaded.rule.Limit; before != float64(limit) { // a sample that changes nothing plans nothing anew
					p.reloaded.change(func(r *flow.Rule) { r.Limit = float64(limit) })
				}
			},
			"time passes": func(t *rapid.T) {
				p.now = p.now.Add(time.Duration(rapid.SampledFrom([]int{1, 20, 250, 1000, 5000}).Draw(t, "ms")) * time.Millisecond)
			},
			"arrive": func(t *rapid.T) { p.arrive(t, rapid.Int32Range(1, 20).Draw(t, "n")) },
			"leave":  func(t *rapid.T) { p.leave(t) },
		})
	})
}

// queuePair is a queue that follows a signal, and one that is reloaded.
type queuePair struct {
	now      clock.Instant
	follows  *flow.Queue
	compiled *flow.Compiled
	reloaded *testQueue
	waiting  [][2]*flow.Waiter
}

// compare asks both queues about everything.
func (p *queuePair) compare(t *rapid.T) {
	limit, remaining, reset := p.reloaded.queue.Status(p.now)
	followed, left, next := p.follows.Status(p.now)
	assert.InEpsilon(t, limit, followed, 1e-9)
	assert.Equal(t, remaining, left)
	assert.InDelta(t, reset, next, 10)
	still := p.waiting[:0]
	for i, w := range p.waiting {
		a, _, decision := p.follows.Poll(p.now, w[0])
		b, _, want := p.reloaded.queue.Poll(p.now, w[1])
		assert.Equal(t, want, decision, "call %d", i)
		assert.InDelta(t, int64(b.Time()), int64(a.Time()), 10)
		if want == rule.Wait {
			still = append(still, w)
		}
	}
	p.waiting = still
}

func (p *queuePair) arrive(t *rapid.T, n int32) {
	w := [2]*flow.Waiter{unwoken(), unwoken()}
	a, decision := p.follows.Join(p.compiled, p.now, n, time.Hour, w[0])
	b, want := p.reloaded.queue.Join(p.reloaded.compiled, p.now, n, time.Hour, w[1])
	assert.Equal(t, want, decision)
	assert.InDelta(t, int64(b.Time()), int64(a.Time()), 10)
	if want == rule.Wait {
		p.waiting = append(p.waiting, w)
	}
}

func (p *queuePair) leave(t *rapid.T) {
	p.compare(t)
	if len(p.waiting) == 0 {
		t.Skip("no call waits")
	}
	i := rapid.IntRange(0, len(p.waiting)-1).Draw(t, "who")
	_, left := p.follows.Leave(p.now, p.waiting[i][0])
	_, want := p.reloaded.queue.Leave(p.now, p.waiting[i][1])
	assert.Equal(t, want, left)
	p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
}
