package hotparam_test

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// TestNoValuePassesMoreWhileSlotsChangeHands has many goroutines call with more values than
// there are slots, while rules are reloaded and tables change their size.
func TestNoValuePassesMoreWhileSlotsChangeHands(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			const instances, limit, values, lasts = 2, 10, 300, 16 * time.Second
			r := shared(hotparam.Rule{Limit: limit, Window: 10 * time.Second, MaxValues: 200, Fleet: rule.Fleet{Mode: mode}})
			if mode == fleet.ModeAsk {
				// The time is not that of the goroutines: some answers come too late.
				r.Fleet.OnOutage = fleet.OutageClosed
			}
			s := newScene(t, r, instances)
			begin := s.clock.Now()
			var passed [values]atomic.Int64
			current := make([]atomic.Pointer[rule.Limiter], instances)
			for i, in := range s.instances {
				first := in.limiter
				current[i].Store(&first)
			}
			var calls sync.WaitGroup
			stop := make(chan struct{})
			for g := range 8 {
				calls.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(g)))
					for !isClosed(stop) {
						now := s.clock.Now()
						// A third of the values at a time: the slots of the others are as new after some seconds.
						value := int(now.Sub(begin)/(5*time.Second))%3*values/3 + random.IntN(values/3)
						l := *current[random.IntN(instances)].Load()
						if callOnce(l, rule.Call{Now: now, Tokens: 1, Attribute: user(strconv.Itoa(value))}) {
							passed[value].Add(1)
						}
						runtime.Gosched()
					}
				})
			}
			for step := 0; s.clock.Now() < begin.Add(lasts); step++ {
				s.clock.Advance(8 * time.Millisecond)
				for i, in := range s.instances {
					in.step()
					in.poll()
					in.call("newcomer-" + strconv.Itoa(step)) // more than there are slots, which change hands
					if step%200 == 0 {
						r.MaxValues = 200 + step%3*100
						require.True(t, in.load(r))
						next := in.limiter
						current[i].Store(&next)
						in.limiter.Idle(s.clock.Now())
					}
				}
				runtime.Gosched()
			}
			for _, in := range s.instances {
				assert.Positive(t, in.gauge(gaugeForgotten))
				assert.Positive(t, in.gauge(gaugeWithoutSlot))
			}
			close(stop)
			finished := make(chan struct{})
			go func() {
				calls.Wait()
				close(finished)
			}()
			for !isClosed(finished) { // calls wait for answers still
				s.clock.Advance(time.Millisecond)
				for _, in := range s.instances {
					in.step()
				}
			}
			lasted := s.clock.Now().Sub(begin)
			all := int64(0)
			for value := range passed {
				n := passed[value].Load()
				all += n
				assert.LessOrEqual(t, float64(n), 2*bound(limit/10.0, limit, lasted, instances), "its own limit and that of a cell")
			}
			assert.Greater(t, all, int64(values))
			s.run(3*time.Second, nil)
			for _, in := range s.instances {
				in.limiter.(rule.Retirer).Retire(s.clock.Now())
			}
			s.run(3*time.Second, nil)
			for _, in := range s.instances {
				assert.Empty(t, in.member.Status(s.clock.Now()).Limits)
			}
		})
	}
}

// callOnce makes a call and waits for the answer, if there is one to wait for.
func callOnce(l rule.Limiter, c rule.Call) (passed bool) {
	_, decision := l.Acquire(c)
	if decision != rule.Wait {
		return decision == rule.Pass
	}
	woken := make(chan struct{}, 1)
	w, _, decision := l.(rule.Queue).Join(c, rule.Patience{Since: c.Now, Until: 1<<63 - 1, Wake: func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	}})
	for decision == rule.Wait {
		<-woken
		_, _, decision = w.Poll(c.Now.Add(time.Second))
	}
	return decision == rule.Pass
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
