package adaptive_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// refusingStrategies are rules of the strategies that never let a call wait.
func refusingStrategies() map[string]adaptive.Rule {
	return map[string]adaptive.Rule{
		"threshold": {Strategy: adaptive.Threshold, Concurrency: 20, QPS: 1e6, AvgRT: time.Second, CPU: 0.9},
	}
}

func TestCallsThatAreNotInboundPassAnInboundRule(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Inbound: true, Strategy: adaptive.Threshold, Concurrency: 1})
	outbound := rule.Call{Now: s.now, Tokens: 1}
	for range 3 {
		ticket, decision := s.limiter.Acquire(outbound)
		require.Equal(t, rule.Pass, decision)
		assert.Zero(t, s.gauge("in_flight"))
		s.limiter.Done(ticket, rule.Exit{Start: s.now, Now: s.now})
		ticket, _ = s.limiter.Acquire(outbound)
		s.limiter.GiveBack(s.now, ticket, 1)
	}
	_, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
	assert.Equal(t, rule.Pass, decision)
	_, decision = s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
	assert.Equal(t, rule.Block, decision)
	_, decision = s.limiter.Acquire(outbound)
	assert.Equal(t, rule.Pass, decision)
}

func TestGiveBackUndoesAnAcquire(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 3, QPS: 5})
	for range 20 {
		ticket, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
		require.Equal(t, rule.Pass, decision)
		s.limiter.GiveBack(s.now, ticket, 1)
	}
	assert.Zero(t, s.gauge("in_flight"))

	// A bucket that is over gets its tokens back, too.
	earlier := s.now
	for range 3 {
		_, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
		require.Equal(t, rule.Pass, decision)
	}
	s.now = s.now.Add(200 * time.Millisecond)
	assert.False(t, s.passes(), "three are under way")
	for range 3 {
		s.limiter.GiveBack(earlier, 0, 1)
	}
	passed := 0
	for range 10 {
		if ticket, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, "")); decision == rule.Pass {
			s.limiter.Done(ticket, rule.Exit{Start: s.now, Now: s.now})
			passed++
		}
	}
	assert.Equal(t, 5, passed, "tokens of this second")
}

func TestReloadKeepsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 10, QPS: 100})
	for range 4 {
		_, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
		require.Equal(t, rule.Pass, decision)
	}
	old := s.limiter
	s.adopt(func(r *adaptive.Rule) { r.Concurrency = 4 })
	_, decision := old.Acquire(s.request(rule.PriorityNormal, ""))
	assert.Equal(t, rule.Pass, decision, "the new version is not in force yet")
	old.GiveBack(s.now, 0, 1)

	s.limiter.Activate(s.now)
	_, decision = old.Acquire(s.request(rule.PriorityNormal, ""))
	assert.Equal(t, rule.Stale, decision)
	old.Activate(s.now)
	assert.False(t, s.passes(), "four are under way")
	old.Done(0, rule.Exit{Start: s.now, Now: s.now})
	assert.True(t, s.passes())
	assert.InDelta(t, 4, s.gauge("limit"), 0)
	assert.InDelta(t, 3, s.gauge("in_flight"), 0)

	s.adopt(func(r *adaptive.Rule) { r.QPS = 5 })
	assert.True(t, s.passes(), "the first call puts a version in force; four of five tokens are taken")
	_, decision = s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
	assert.Equal(t, rule.Pass, decision)
	s.adopt(func(r *adaptive.Rule) { r.QPS, r.Concurrency, r.CPU = 0, 0, 0.5 })
	for range 100 {
		assert.True(t, s.passes(), "neither limit is left")
	}
	s.adopt(func(r *adaptive.Rule) { r.Concurrency, r.CPU = 5, 0 })
	assert.True(t, s.passes())
	assert.InDelta(t, 4, s.gauge("in_flight"), 0)
}

// A new version of a rule that is shedding goes on shedding.
func TestReloadDoesNotLetShedCallsPass(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, CPU: 0.5})
	s.signal(rule.SignalCPU, 1)
	load := stream{rate: 2000, takes: time.Millisecond}
	s.run(5*time.Second, nil, load)
	before := s.run(50*time.Millisecond, nil, load)
	s.adopt(func(r *adaptive.Rule) { r.CPU = 0.6 })
	s.limiter.Activate(s.now)
	after := s.run(50*time.Millisecond, nil, load)
	assert.InDelta(t, before[0].passed, after[0].passed, 10)
	assert.Less(t, after[0].share(), 0.2)
}

// What is kept to shed calls is given up some time after it was needed last.
func TestThresholdRestsAfterOverload(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 10})
	s.run(5*time.Second, nil, threefold(100*time.Millisecond)...)
	assert.Less(t, s.gauge("passing_share"), 0.5)
	s.run(30*time.Second, nil, stream{rate: 50, takes: time.Millisecond})
	assert.InDelta(t, 1, s.gauge("passing_share"), 0)
	out := s.run(time.Second, nil, stream{rate: 50, priority: rule.PrioritySheddable, takes: time.Millisecond})
	assert.InDelta(t, 1, out[0].share(), 0)
}

func TestChangeOfStrategyBeginsAnew(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{})
	other := adaptive.Kind().WithDefaults(adaptive.Rule{Resource: "r", Strategy: adaptive.Threshold, QPS: 1})
	assert.Nil(t, adaptive.Kind().Of(other).Adopt(s.limiter, s.env()))
}

func TestShedCallsAreCountedByPriority(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 1})
	s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
	for i, p := range rule.Priorities() {
		for range i + 1 {
			ticket, decision := s.limiter.Acquire(s.request(p, ""))
			require.Equal(t, rule.Block, decision)
			require.Equal(t, rule.RetryUnknown, ticket)
			require.Zero(t, s.limiter.RetryAfter(s.request(p, "")))
		}
		assert.InDelta(t, i+1, s.gauge("shed", p.String()), 0)
	}
	assert.True(t, math.IsNaN(s.gauge("queued")))
}

// A limiter is forgotten only when it has had no call for a while.
func TestIdleLimiterHasHadNoCallForAWhile(t *testing.T) {
	t.Parallel()
	for name, r := range refusingStrategies() {
		s := newScene(t, r)
		ticket, _ := s.limiter.Acquire(s.request(rule.PriorityNormal, ""))
		assert.False(t, s.limiter.Idle(s.now.Add(time.Hour)), "%s: a call is under way", name)
		s.limiter.Done(ticket, rule.Exit{Start: s.now, Now: s.now})
		assert.False(t, s.limiter.Idle(s.now.Add(10*time.Second)), name)
		assert.True(t, s.limiter.Idle(s.now.Add(2*time.Minute)), name)
	}
}

func TestStrangeTimesDoNoHarm(t *testing.T) {
	t.Parallel()
	for name, r := range refusingStrategies() {
		s := newScene(t, r)
		s.signal(rule.SignalCPU, 1)
		for i := range 2000 {
			s.now = epoch.Add([]time.Duration{0, -time.Hour, time.Millisecond, time.Hour, 0, 5 * time.Second}[i%6])
			if ticket, decision := s.limiter.Acquire(s.request(rule.PriorityNormal, "")); decision == rule.Pass {
				s.limiter.Done(ticket, rule.Exit{Start: s.now.Add(time.Second), Now: s.now})
			}
		}
		assert.Zero(t, s.gauge("in_flight"), name)
		s.now = epoch.Add(2 * time.Hour)
		s.signal(rule.SignalCPU, 0.1)
		s.run(20*time.Second, nil, stream{rate: 100, takes: time.Millisecond})
		assert.True(t, s.passes(), name)
	}
}

func TestSignalThatCannotBeReadShedsNothing(t *testing.T) {
	t.Parallel()
	for _, r := range []adaptive.Rule{
		{Strategy: adaptive.Threshold, CPU: 0.5, Load: 1, Memory: 0.5, SchedulerDelay: time.Millisecond},
	} {
		s := newScene(t, r)
		out := s.run(5*time.Second, nil, stream{rate: 1000, takes: 100 * time.Millisecond})
		assert.InDelta(t, 1, out[0].share(), 0)
		assert.InDelta(t, len(s.readings), s.gauge("unreadable_signals"), 0)
		for _, reading := range s.readings {
			reading.Store(0.0001)
		}
		s.run(time.Second, nil, stream{rate: 1000, takes: 100 * time.Millisecond})
		assert.Zero(t, s.gauge("unreadable_signals"))
		s.signal(rule.SignalCPU, 1)
		out = s.run(5*time.Second, nil, stream{rate: 5000, takes: 100 * time.Millisecond})
		assert.Less(t, out[0].share(), 0.999, "%s sheds when it can be read", r.Strategy)
		s.readings.Reading(rule.SignalCPU).Store(math.NaN())
		s.run(20*time.Second, nil, stream{rate: 1000, takes: 100 * time.Millisecond})
		out = s.run(time.Second, nil, stream{rate: 1000, takes: 100 * time.Millisecond})
		assert.InDelta(t, 1, out[0].share(), 0, "%s passes all again", r.Strategy)
	}
}

// Passing, refusing, ending and updating allocate nothing, also while calls are shed.
func TestCallsDoNotAllocate(t *testing.T) {
	for name, r := range refusingStrategies() {
		s := newScene(t, r)
		s.signal(rule.SignalCPU, 0.95)
		var tickets [64]rule.Ticket
		calls := func() {
			passed := 0
			for i := range tickets {
				s.now = s.now.Add(5 * time.Millisecond)
				c := s.request(rule.Priorities()[i%5], "caller")
				if ticket, decision := s.limiter.Acquire(c); decision == rule.Pass {
					tickets[passed] = ticket
					passed++
				}
			}
			for _, ticket := range tickets[:passed] {
				s.limiter.Done(ticket, rule.Exit{Start: s.now, Now: s.now.Add(time.Millisecond)})
			}
		}
		assert.Zero(t, testing.AllocsPerRun(100, calls), name)
	}
}

func TestCallerCountsOnlyWhileCallsAreShed(t *testing.T) {
	t.Parallel()
	s := newScene(t, adaptive.Rule{Strategy: adaptive.Threshold, Concurrency: 2})
	late := s.limiter.(optional.LateReader)
	tickets := make([]rule.Ticket, 2)
	for i := range tickets {
		ticket, decision := late.AcquireUnread(s.request(rule.PriorityNormal, ""))
		require.Equal(t, rule.Pass, decision)
		tickets[i] = ticket
	}
	for range 2 {
		_, decision := late.AcquireUnread(s.request(rule.PriorityNormal, ""))
		require.Equal(t, rule.Block, decision, "no call would pass, whoever the caller is")
	}
	for _, ticket := range tickets {
		s.limiter.Done(ticket, rule.Exit{Start: s.now, Now: s.now})
	}
	_, decision := late.AcquireUnread(s.request(rule.PriorityNormal, ""))
	require.Equal(t, optional.NeedsAttribute, decision)
	assert.Zero(t, s.gauge("in_flight"), "nothing is taken")
	_, decision = s.limiter.Acquire(s.request(rule.PriorityNormal, "app"))
	assert.Equal(t, rule.Pass, decision)
}
