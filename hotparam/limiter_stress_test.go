package hotparam_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

const (
	stressGoroutines = 64
	stressValues     = 20
)

// versions is a rule that is reloaded while calls come, which ask the newest version that
// they know of.
type versions struct {
	service
	current atomic.Pointer[rule.Limiter]
}

func newVersions(t *testing.T, r hotparam.Rule) *versions {
	v := &versions{service: service{t: t, now: epoch}}
	v.start(r)
	v.publish()
	return v
}

func (v *versions) publish() {
	l := v.limiter
	v.current.Store(&l)
}

// reloadOften changes the rule and goes back until stop is closed, if so asked the size of
// the table too.
func (v *versions) reloadOften(t *testing.T, resize bool, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		require.True(t, v.reload(func(r *hotparam.Rule) {
			if r.MaxValues = 1000; resize && i%4 >= 2 {
				r.MaxValues = 3000
			}
			r.Missing = rule.MissingBlock
			if i%2 == 0 {
				r.Missing = rule.MissingPass
			}
		}))
		v.publish()
	}
}

// acquire asks the present version until it is not stale.
func (v *versions) acquire(c rule.Call) (rule.Limiter, rule.Ticket, rule.Decision) {
	for {
		l := *v.current.Load()
		if ticket, decision := l.Acquire(c); decision != rule.Stale {
			return l, ticket, decision
		}
	}
}

func TestEachValueGetsExactlyItsLimitUnderReloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*hotparam.Rule)
		want   int64
	}{
		{"token bucket", func(r *hotparam.Rule) { r.Limit = 300 }, 300},
		{"own states", func(r *hotparam.Rule) { r.Values = rule.NumberMapOf(text("v0", 400), text("v1", 400)) }, 10},
		{"sliding window", func(r *hotparam.Rule) { r.Limit, r.Algorithm = 300, hotparam.SlidingWindow }, 300},
		{"throttle", func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle }, 1},
	} {
		for _, resize := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resize %v", c.name, resize), func(t *testing.T) {
				t.Parallel()
				countEachValue(t, c.change, c.want, resize)
			})
		}
	}
}

func countEachValue(t *testing.T, change func(*hotparam.Rule), limit int64, resize bool) {
	v := newVersions(t, perUser(change))
	var passed [stressValues]atomic.Int64
	var callers, reloads sync.WaitGroup
	stop := make(chan struct{})
	reloads.Go(func() { v.reloadOften(t, resize, stop) })
	for g := range stressGoroutines {
		callers.Go(func() {
			for i := range 400 {
				n := (g + i) % stressValues
				l, ticket, decision := v.acquire(callOf(n))
				switch {
				case decision != rule.Pass:
				case (g+i)%7 == 0 && limit > 1:
					l.GiveBack(epoch, ticket, 1)
				default:
					passed[n].Add(1)
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	reloads.Wait()
	for n := range passed {
		want := limit
		if named := v.rule.Values.Len(); n < named {
			want = 400
		}
		got := passed[n].Load()
		for {
			if _, _, decision := v.acquire(callOf(n)); decision != rule.Pass {
				break
			}
			got++
		}
		if resize {
			assert.LessOrEqual(t, got, want, n)
			assert.GreaterOrEqual(t, got, want-givenBackLate(limit), n)
		} else {
			assert.Equal(t, want, got, n)
		}
	}
}

// callOf returns a call of the value of a number.
func callOf(n int) rule.Call {
	return rule.Call{Now: epoch, Tokens: 1, Attribute: user(fmt.Sprintf("v%d", n))}
}

// givenBackLate is how many tokens a value may lack because its call was given back after
// another table had taken over, which has no effect any more.
func givenBackLate(limit int64) int64 { return limit / 3 }

func TestCallsUnderWayNeverExceedTheLimitUnderReloads(t *testing.T) {
	t.Parallel()
	const limit = 3
	v := newVersions(t, perUser(func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, limit }))
	var underWay, highest [stressValues]atomic.Int64
	var callers, reloads sync.WaitGroup
	stop := make(chan struct{})
	reloads.Go(func() { v.reloadOften(t, true, stop) })
	for g := range stressGoroutines {
		callers.Go(func() {
			for i := range 400 {
				n := (g * i) % stressValues
				call := rule.Call{Now: epoch, Tokens: 1, Attribute: rule.Int(int64(n))}
				l, ticket, decision := v.acquire(call)
				if decision != rule.Pass {
					continue
				}
				now := underWay[n].Add(1)
				for {
					seen := highest[n].Load()
					if now <= seen || highest[n].CompareAndSwap(seen, now) {
						break
					}
				}
				underWay[n].Add(-1)
				l.(rule.Finisher).Done(ticket, rule.Exit{Now: epoch})
			}
		})
	}
	callers.Wait()
	close(stop)
	reloads.Wait()
	for n := range highest {
		assert.LessOrEqual(t, highest[n].Load(), int64(limit))
		var tickets int
		for ; ; tickets++ {
			if _, _, decision := v.acquire(rule.Call{Now: epoch, Tokens: 1, Attribute: rule.Int(int64(n))}); decision != rule.Pass {
				break
			}
		}
		assert.Equal(t, limit, tickets, "all places are free again")
	}
}

// A million calls a second through a throttle are spaced a microsecond apart, whoever
// comes first.
func TestThrottleHoldsAtAMillionASecond(t *testing.T) {
	t.Parallel()
	v := newVersions(t, perUser(func(r *hotparam.Rule) {
		r.Algorithm, r.Limit, r.MaxWait = hotparam.Throttle, 1e6, time.Second
	}))
	var mu sync.Mutex
	at := map[time.Duration]bool{}
	var callers sync.WaitGroup
	for range stressGoroutines {
		callers.Go(func() {
			for range 100 {
				call := rule.Call{Now: epoch, Tokens: 1, Attribute: user("a")}
				delay := time.Duration(0)
				if _, decision := v.limiter.Acquire(call); decision == rule.Wait {
					w, _, decision := v.limiter.(rule.Queue).Join(call, rule.Patience{Since: epoch, Until: 1<<63 - 1, Wake: func() {}})
					assert.Equal(t, rule.Wait, decision)
					_, delay, _ = w.Poll(epoch)
					_, _, decision = w.Poll(epoch.Add(delay))
					assert.Equal(t, rule.Pass, decision)
				}
				mu.Lock()
				assert.False(t, at[delay], "two calls pass at %v", delay)
				at[delay] = true
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	assert.Len(t, at, 100*stressGoroutines)
	for delay := range at {
		assert.Zero(t, delay%time.Microsecond)
		assert.Less(t, delay, 100*stressGoroutines*time.Microsecond)
	}
}

func TestPenaltiesCountEveryRefusal(t *testing.T) {
	t.Parallel()
	v := newVersions(t, perUser(func(r *hotparam.Rule) {
		r.Penalty = hotparam.Penalty{After: 64 * 50, Within: time.Second, For: time.Minute}
	}))
	require.Equal(t, 9, func() (n int) {
		for range 9 {
			if v.ask(user("a")) == rule.Pass {
				n++
			}
		}
		return n
	}())
	require.Equal(t, rule.Pass, v.ask(user("a")))
	var callers sync.WaitGroup
	for g := range stressGoroutines {
		callers.Go(func() {
			for i := range 50 {
				if g == 0 && i == 0 {
					continue
				}
				_, decision := v.limiter.Acquire(rule.Call{Now: epoch, Tokens: 1, Attribute: user("a")})
				assert.Equal(t, rule.Block, decision)
			}
		})
	}
	callers.Wait()
	assert.Equal(t, 100*time.Millisecond, v.retryAfter(user("a")), "one refusal is missing")
	v.ask(user("a"))
	assert.Equal(t, time.Minute, v.retryAfter(user("a")))
}
