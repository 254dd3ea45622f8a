package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// counters count the calls of a user.
type counters struct {
	underWay, most atomic.Int64
	tokens         atomic.Int64 // of calls that passed, as settled in the end
}

// stress is a service under everything at once.
type stress struct {
	t      *testing.T
	clock  *clock.Virtual
	engine *core.Engine
	users  [6]counters
	errors sync.Map // what was returned that nobody could expect

	passed, blocked, cancelled, closed atomic.Int64
}

const (
	stressRate, stressBurst = 50.0, 20
	stressUnderWay          = 3
)

// steadyLimits never change: of all users, they promise the same all the time.
func steadyLimits() []hotparam.Rule {
	user := rule.StringsOf("user")
	return []hotparam.Rule{
		{Name: "rate", Resource: "r", Param: user, Limit: stressRate, Burst: stressBurst, MaxValues: 100},
		{Name: "under way", Resource: "r", Param: user, Concurrency: stressUnderWay, MaxValues: 100},
	}
}

// load puts the steady rules in force with some that are others each time.
func (s *stress) load(random *rand.Rand) {
	set := steadyLimits()
	for i, name := range []string{"a", "b", "c"} {
		r := hotparam.Rule{Name: name, Resource: "r", Param: rule.StringsOf([]string{"user", "other"}[random.IntN(2)])}
		r.MaxValues = 100 * (1 + random.IntN(3))
		r.Limit = float64(random.IntN(500))
		switch random.IntN(6) {
		case 0:
			continue // the rule is gone
		case 1:
			r.Algorithm = hotparam.SlidingWindow
		case 2, 3:
			r.Algorithm, r.MaxWait = hotparam.Throttle, time.Duration(random.IntN(100))*time.Millisecond
		case 4:
			r.Limit, r.Concurrency = 0, 1+random.IntN(20)
		default:
			r.Penalty = hotparam.Penalty{After: 50, Within: time.Second, For: time.Duration(1+random.IntN(50)) * time.Millisecond}
		}
		if i == 0 && r.Concurrency == 0 {
			r.Values = rule.NumberMapOf(rule.NumberEntry{Key: rule.String(fmt.Sprint("user-", random.IntN(6))), Value: 300})
		}
		set = append(set, r)
	}
	if err := s.engine.Load(rules.Set{HotParam: set}); err != nil && !errors.Is(err, core.ErrClosed) {
		s.errors.Store(err.Error(), true)
	}
}

// call makes a call of one of the users, or of one among thousands of others.
func (s *stress) call(random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n, tokens := random.IntN(10), 1+random.IntN(4)
	name, c := fmt.Sprint("scan-", random.IntN(5000)), &counters{}
	if n < len(s.users) {
		name, c = fmt.Sprint("user-", n), &s.users[n]
	}
	opts := []core.Option{core.String("user", name), core.Int("other", int64(n)), core.Tokens(tokens)}
	switch random.IntN(4) {
	case 0:
		opts = append(opts, core.NoWait())
	case 1:
		go func() {
			runtime.Gosched()
			cancel()
		}()
	}
	guard, err := s.engine.Entry(ctx, "r", opts...)
	defer guard.Exit()
	switch {
	case err == nil:
		s.pass(&guard, c, random, tokens)
	case errors.Is(err, core.ErrBlocked):
		s.blocked.Add(1)
	case errors.Is(err, context.Canceled):
		s.cancelled.Add(1)
	case errors.Is(err, core.ErrClosed):
		s.closed.Add(1)
	default:
		s.errors.Store(err.Error(), true)
	}
}

func (s *stress) pass(guard *core.Guard, c *counters, random *rand.Rand, tokens int) {
	s.passed.Add(1)
	now := c.underWay.Add(1)
	defer c.underWay.Add(-1) // before the guard exits
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	for range random.IntN(3) {
		runtime.Gosched()
	}
	if random.IntN(3) == 0 {
		tokens = 1 + random.IntN(8)
		guard.Settle(tokens)
	}
	c.tokens.Add(int64(tokens))
}

// 64 goroutines call under rules that are replaced all the time: limits go up and down,
// tables change their size, rules go and come, count in another way or other attributes.
// Calls give up waiting, are settled up and down, and the engine is closed in the end. No
// user gets more than the rules promise that stay.
func TestUsersGetNoMoreThanTheirLimitsWhateverIsReloaded(t *testing.T) {
	before := runtime.NumGoroutine()
	s := &stress{t: t, clock: clock.NewVirtual(time.Unix(1_700_000_000, 0))}
	s.engine = core.New(core.Config{Clock: s.clock, Logger: slog.New(slog.DiscardHandler)})
	start := s.clock.Now()
	s.load(rand.New(rand.NewPCG(0, 0)))
	var callers, others sync.WaitGroup
	done := make(chan struct{})
	for g := range 64 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range 600 {
				s.call(random)
			}
		})
	}
	background := func(step func()) {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					step()
					runtime.Gosched()
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(2, 2))
	background(func() { s.clock.Advance(200 * time.Microsecond) })
	background(func() { s.load(random) })
	background(func() { s.engine.Explain("r"); s.engine.Status() })
	callers.Wait()
	s.check(s.clock.Now().Sub(start))

	for g := range 64 { // some wait while the engine is closed
		callers.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(g)))
			for s.closed.Load() < 64 {
				s.call(random)
			}
		})
	}
	s.engine.Close()
	callers.Wait()
	close(done)
	others.Wait()
	assert.Zero(t, goroutinesAbove(before), "goroutines are left")
	s.errors.Range(func(err, _ any) bool {
		t.Errorf("an error that nobody could expect: %v", err)
		return true
	})
}

func (s *stress) check(elapsed time.Duration) {
	s.t.Logf("%v: %d passed, %d blocked, %d cancelled", elapsed, s.passed.Load(), s.blocked.Load(), s.cancelled.Load())
	require.Positive(s.t, s.passed.Load())
	require.Positive(s.t, s.blocked.Load())
	require.Positive(s.t, s.cancelled.Load())
	for i := range s.users {
		c := &s.users[i]
		// A call may be settled up when all is used: the last calls of a user may owe.
		const debt = stressUnderWay * 8
		assert.LessOrEqual(s.t, float64(c.tokens.Load()), stressBurst+stressRate*elapsed.Seconds()+debt, "user %d", i)
		assert.LessOrEqual(s.t, c.most.Load(), int64(stressUnderWay), "user %d", i)
	}
	s.clock.Advance(1) // tables are read once for each instant
	for _, applied := range s.engine.Explain("r") {
		if applied.Name == "under way" {
			assert.Zero(s.t, applied.Gauges[0], "calls under way at rest")
		}
	}
}
