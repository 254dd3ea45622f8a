package redis

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// service is engines that share limits through a server, each by connections of its own.
type service struct {
	t       *testing.T
	server  *redistest.Server
	engines []*core.Engine
	passed  atomic.Int64 // counted from outside
}

// newService returns engines that wait for answers for so long, 0 for as long as by default.
func newService(t *testing.T, server *redistest.Server, engines int, timeout time.Duration, r flow.Rule) *service {
	s := &service{t: t, server: server}
	for i := range engines {
		engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{
			Instance: strconv.Itoa(i), Backend: open(t, Options{Addresses: []string{server.Addr()}}), Timeout: timeout,
		}})
		t.Cleanup(engine.Close)
		s.engines = append(s.engines, engine)
	}
	s.load(r)
	return s
}

func (s *service) load(r flow.Rule) {
	r.Name, r.Resource, r.Scope = "quota", "partner", rule.ScopeFleet
	for _, engine := range s.engines {
		require.NoError(s.t, engine.Load(rules.Set{Flow: []flow.Rule{r}}))
	}
}

// call has so many goroutines of each engine call while more is true.
func (s *service) call(goroutines int, more func() bool) {
	var callers sync.WaitGroup
	for _, engine := range s.engines {
		for range goroutines {
			callers.Go(func() {
				for more() {
					if guard, err := engine.Entry(context.Background(), "partner"); err == nil {
						s.passed.Add(1)
						guard.Exit()
					}
				}
			})
		}
	}
	callers.Wait()
}

// times returns a function that is true so often.
func times(n int64) func() bool {
	var called atomic.Int64
	return func() bool { return called.Add(1) <= n }
}

// In mode ask, any number of goroutines of any number of engines pass exactly the limit.
func TestEnginesThatAskPassExactlyTheLimit(t *testing.T) {
	t.Parallel()
	server := redistest.Any(t)
	const limit = 300
	const day = 24 * time.Hour
	for i, r := range []flow.Rule{
		{Algorithm: flow.FixedWindow, Limit: limit, Window: day},
		{Algorithm: flow.SlidingWindow, Limit: limit, Window: day},
		{Algorithm: flow.TokenBucket, Limit: 1, Window: day, Burst: limit},
	} {
		r.Fleet = rule.Fleet{Mode: fleet.ModeAsk}
		t.Run(string(r.Algorithm), func(t *testing.T) {
			server.Flush()
			s := newService(t, server, 4, patience, r)
			s.call(16, times(2000))
			assert.EqualValues(t, limit, s.passed.Load(), "rule %d", i)
		})
	}
}

// A server that keeps a log of what it writes still knows, after it was killed, what has passed of a
// month.
func TestMonthOutlivesAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "always"}})
	const limit = 50
	month := rule.Calendar{Period: rule.Period{Count: 1, Unit: rule.Month}, TimeZone: "Europe/Berlin"}
	r := flow.Rule{Limit: limit, Calendar: month, Fleet: rule.Fleet{OnOutage: fleet.OutageClosed}}
	if now := time.Now(); now.AddDate(0, 0, 1).Month() != now.Month() {
		r.Calendar.StartsAt = "2026-01-15" // no month ends during the test
	}
	s := newService(t, server, 2, patience, r)
	s.call(4, times(20))
	require.EqualValues(t, 20, s.passed.Load())
	server.Kill()
	server.Restart()
	again := newService(t, server, 2, patience, r)
	again.call(4, times(200))
	assert.EqualValues(t, limit-20, again.passed.Load())
}

// While engines call, the limit and what happens in outages change, connections are cut, keys
// disappear and scripts are forgotten. What passes stays within what the limits in force
// allowed, and a fifth: a bucket whose key was deleted is full until an instance says what
// the store had counted.
func TestLimitHoldsWhileRulesChangeAndKeysDisappear(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	const burst, duration = 50, 3 * time.Second
	rule := func(limit float64, onOutage fleet.OnOutage) flow.Rule {
		return flow.Rule{
			Algorithm: flow.TokenBucket, Limit: limit, Burst: burst,
			Fleet: rule.Fleet{Mode: fleet.ModeLease, OnOutage: onOutage},
		}
	}
	limit := 1000.0
	s := newService(t, server, 3, time.Second, rule(limit, fleet.OutageLast)) // a busy machine is no outage
	begin := time.Now()
	isOver := func() bool { return time.Since(begin) > duration }
	allowed, deleted := float64(burst), 0
	var faults sync.WaitGroup
	faults.Go(func() {
		random := rand.New(rand.NewPCG(1, 1))
		for since, before := begin, limit; ; {
			time.Sleep(20 * time.Millisecond)
			over := isOver()
			now := time.Now()
			allowed += max(limit, before) * now.Sub(since).Seconds() // the engines change their limits one after the other
			since, before = now, limit
			if over {
				return
			}
			switch random.IntN(10) {
			case 0:
				server.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			case 1:
				if key, ok := server.Do("RANDOMKEY").(string); ok {
					server.Do("DEL", key)
					deleted++
				}
			case 2:
				server.Do("SCRIPT", "FLUSH")
			case 3:
				limit = []float64{250, 500, 1000}[random.IntN(3)]
				s.load(rule(limit, []fleet.OnOutage{fleet.OutageLast, fleet.OutageShare, fleet.OutageClosed}[random.IntN(3)]))
			}
		}
	})
	s.call(4, func() bool {
		time.Sleep(time.Millisecond)
		return !isOver()
	})
	faults.Wait()
	t.Logf("%d passed, of %.0f that the limits allow, %d keys deleted", s.passed.Load(), allowed, deleted)
	assert.LessOrEqual(t, float64(s.passed.Load()), 1.2*allowed)
	assert.Greater(t, s.passed.Load(), int64(burst/10), "how much passes depends on how busy the machine is")
}

// An engine that is closed while the server hangs waits no longer than the timeout.
func TestEnginesCloseWhileTheServerHangs(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeAsk} {
		server := redistest.Start(t, redistest.Options{})
		s := newService(t, server, 2, 0, flow.Rule{Algorithm: flow.TokenBucket, Limit: 1000, Fleet: rule.Fleet{Mode: mode}})
		s.call(4, times(200))
		server.Pause()
		var callers sync.WaitGroup
		callers.Go(func() { s.call(4, times(100)) })
		time.Sleep(20 * time.Millisecond)
		for _, engine := range s.engines {
			begin := time.Now()
			engine.Close()
			assert.Less(t, time.Since(begin), 100*time.Millisecond+patience, "it hangs")
		}
		server.Resume()
		callers.Wait()
	}
}
