package adaptive_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Many goroutines call at once: in the bubble of synctest a wake-up that is lost is a
// deadlock. Never more calls are under way than maxLimit.
func TestCallsOfManyGoroutinesKeepTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 6
		r := adaptive.Rule{Resource: "r", InitialLimit: 4, MinLimit: 2, MaxLimit: most}
		now := clock.System()
		l := adaptive.Kind().Of(adaptive.Kind().WithDefaults(r)).NewLimiter(rule.Env{Version: 1, Now: now.Now(), Seed: 1}).(latencyLimiter)
		var underWay, passed, refused, gaveUp atomic.Int64
		work := func(random *rand.Rand) {
			if n := underWay.Add(1); n > most {
				t.Errorf("%d calls under way, at most %d may be", n, most)
			}
			passed.Add(1)
			if random.IntN(3) > 0 {
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			}
			underWay.Add(-1)
		}
		var running sync.WaitGroup
		for i := range 40 {
			running.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), 1))
				for range 300 {
					call := rule.Call{Now: now.Now(), Tokens: 1}
					call.SetCaller(rule.Priority(random.IntN(5)-2), true)
					switch ticket, decision := enter(l, call, now, random.IntN(4) == 0); decision {
					case rule.Pass:
						start := now.Now()
						work(random)
						l.Done(ticket, rule.Exit{Now: now.Now(), Start: start, Failed: random.IntN(9) == 0})
					case rule.Wait:
						gaveUp.Add(1)
					default:
						refused.Add(1)
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		running.Wait()
		g := l.Status(now.Now()).Gauges
		require.Zero(t, g[1], "calls under way")
		require.Zero(t, g[2], "calls that wait")
		assert.Equal(t, int64(40*300), passed.Load()+refused.Load()+gaveUp.Load())
		assert.Positive(t, refused.Load())
		assert.Positive(t, gaveUp.Load())
	})
}

// enter makes a call, which gives up after 2 ms of waiting if it is impatient: then the
// decision is Wait.
func enter(l latencyLimiter, call rule.Call, now clock.Clock, impatient bool) (rule.Ticket, rule.Decision) {
	ticket, decision := l.Acquire(call)
	if decision != rule.Wait {
		return ticket, decision
	}
	wake := make(chan struct{}, 1)
	waiter, ticket, decision := l.Join(call, rule.Patience{Since: call.Now, Until: endless, Wake: func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}})
	for decision == rule.Wait {
		var after time.Duration
		if ticket, after, decision = waiter.Poll(now.Now()); decision != rule.Wait {
			break
		}
		if impatient {
			after = 2 * time.Millisecond
		}
		select {
		case <-wake:
		case <-time.After(after):
			if impatient {
				waiter.Leave(now.Now())
				return 0, rule.Wait
			}
		}
	}
	return ticket, decision
}
