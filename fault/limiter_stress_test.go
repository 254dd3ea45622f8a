package fault_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
)

// Goroutines ask, wait, give up, turn the rule off and on, and change it. What the limiter
// has counted is what they have counted, and nobody is left in a delay.
func TestCountsHoldWhateverHappensAtOnce(t *testing.T) {
	t.Parallel()
	const callers, calls = 8, 2000
	r := fault.Rule{Percent: 50, Delay: second, Abort: fault.Abort{HTTP: 503}}
	first, changes := newLimiter(t, r)
	var latest atomic.Pointer[limiter]
	latest.Store(&first)
	var chosen, released, left, refused atomic.Uint64
	var all, operators sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for i := range calls {
				c := call(uint64(caller*calls+i), 0)
				l := *latest.Load()
				if decide(l, c) != rule.Wait {
					continue
				}
				woken := make(chan struct{}, 1)
				w, _, decision := l.Join(c, rule.Patience{Wake: func() { woken <- struct{}{} }})
				if decision != rule.Wait {
					continue
				}
				chosen.Add(1)
				switch random.IntN(3) {
				case 0:
					w.Leave(epoch)
					left.Add(1)
				case 1:
					if _, decision := poll(w, second); decision == rule.Block {
						refused.Add(1)
					} else {
						released.Add(1)
					}
				default:
					<-woken
					_, decision := poll(w, 0)
					assert.Equal(t, rule.Pass, decision, "woken before its time")
					released.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	operators.Go(func() {
		for version := uint64(2); ; version++ {
			select {
			case <-done:
				return
			default:
			}
			switch l := *latest.Load(); version % 4 {
			case 0:
				l.Control(epoch, fault.Off)
			case 1:
				l.Control(epoch, "")
			default:
				next := adopt(t, l, r, rule.Env{Version: version, Now: epoch, Changed: (*changes).env(1).Changed})
				latest.Store(&next)
				next.Activate(epoch)
			}
			runtime.Gosched()
		}
	})
	all.Wait()
	close(done)
	operators.Wait()
	status := (*latest.Load()).Status(epoch)
	assert.Zero(t, status.Gauges[0])
	assert.Equal(t, chosen.Load(), uint64(status.Gauges[1]))
	assert.Equal(t, chosen.Load(), released.Load()+left.Load()+refused.Load())
	assert.Positive(t, released.Load())
	for i, change := range *changes {
		assert.Equal(t, []string{"0s active off", "0s off active"}[i%2], change)
	}
}

// Once Control has returned, no call is delayed or refused.
func TestNoFaultIsInjectedOnceItIsTurnedOff(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]fault.Rule{
		"delay": {Delay: second},
		"abort": {Abort: fault.Abort{HTTP: 503}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 200 {
				l, _ := newLimiter(t, r)
				var off atomic.Bool
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						for i := range uint64(50) {
							wasOff := off.Load()
							decision := decide(l, call(i, 0))
							if decision == rule.Wait {
								_, _, decision = l.Join(call(i, 0), rule.Patience{Wake: func() {}})
							}
							if wasOff {
								assert.Equal(t, rule.Pass, decision)
							}
						}
					})
				}
				l.Control(epoch, fault.Off)
				off.Store(true)
				assert.True(t, l.Idle(epoch))
				all.Wait()
				assert.True(t, l.Idle(epoch))
			}
		})
	}
}
