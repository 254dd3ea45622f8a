package adaptive_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Many goroutines call while the limit is changed and calls of other priorities come: never
// are more under way than the highest limit that was in force, and nothing is lost.
func TestConcurrencyIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const goroutines, each, least, most = 8, 4000, 3, 6
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: most})
	var present atomic.Pointer[limiter]
	first := s.limiter // which adopt changes in s
	present.Store(&first)
	var now, under, highest, refused atomic.Int64
	now.Store(int64(epoch))
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			for i := range each {
				l := *present.Load()
				c := rule.Call{Now: clock.Instant(now.Add(int64(time.Microsecond) * 50)), Tokens: 1, Attribute: rule.Int(int64(i % 50))}
				c.SetCaller(rule.Priorities()[(g+i)%5], true)
				ticket, decision := l.Acquire(c)
				switch decision {
				case rule.Pass:
					n := under.Add(1)
					for h := highest.Load(); n > h && !highest.CompareAndSwap(h, n); h = highest.Load() {
					}
					if i%3 == 0 {
						runtime.Gosched()
					}
					under.Add(-1)
					if i%5 == 0 {
						l.GiveBack(c.Now, ticket, 1)
					} else {
						l.Done(ticket, rule.Exit{Start: c.Now, Now: c.Now + 100})
					}
				case rule.Block:
					refused.Add(1)
				}
			}
		})
	}
	for i := range 50 {
		s.adopt(func(r *adaptive.Rule) { r.Concurrency = least + (most-least)*(i%2) })
		next := s.limiter
		next.Activate(clock.Instant(now.Load()))
		present.Store(&next)
		next.Status(clock.Instant(now.Load()))
		runtime.Gosched()
	}
	done.Wait()
	assert.LessOrEqual(t, highest.Load(), int64(most))
	assert.Zero(t, s.gauge("in_flight"))
	counted := 0.0
	for _, p := range rule.Priorities() {
		counted += s.gauge("shed", p.String())
	}
	assert.InDelta(t, refused.Load(), counted, 0)
}

// Many goroutines call on a clock that goes on with every call: in no ten buckets, one after
// the other, do more tokens pass than the limit.
func TestQPSIsNeverExceededInAnySecond(t *testing.T) {
	t.Parallel()
	const goroutines, each, limit = 8, 5000, 300
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, QPS: limit})
	var now atomic.Int64
	now.Store(int64(epoch))
	var passed [200]atomic.Int64 // by bucket
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			for i := range each {
				at := clock.Instant(now.Add(int64(250 * time.Microsecond)))
				tokens := int32(1 + i%3)
				c := rule.Call{Now: at, Tokens: tokens}
				c.SetCaller(rule.Priorities()[(g+i)%5], true)
				ticket, decision := s.limiter.Acquire(c)
				if decision != rule.Pass {
					continue
				}
				if i%7 == 0 {
					s.limiter.GiveBack(at, ticket, tokens)
					continue
				}
				passed[at.Sub(epoch)/(100*time.Millisecond)].Add(int64(tokens))
				s.limiter.Done(ticket, rule.Exit{Start: at, Now: at})
			}
		})
	}
	done.Wait()
	total := int64(0)
	for i := range len(passed) - 9 {
		sum := int64(0)
		for b := i; b < i+10; b++ {
			sum += passed[b].Load()
		}
		assert.LessOrEqual(t, sum, int64(limit), "from bucket %d on", i)
		total += passed[i].Load()
	}
	assert.Greater(t, total, int64(4*limit), "of ten seconds")
	assert.Zero(t, s.gauge("in_flight"))
}
