package adaptive_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

func TestCallsBeyondTheLimitWaitAndPassInOrder(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	first, second := s.call(rule.PriorityNormal), s.call(rule.PriorityNormal)
	third, fourth := s.call(rule.PriorityNormal), s.call(rule.PriorityNormal)
	require.Equal(t, []rule.Decision{rule.Pass, rule.Pass, rule.Wait, rule.Wait},
		[]rule.Decision{first.decision, second.decision, third.decision, fourth.decision})
	assert.Equal(t, gates{limit: 2, inFlight: 2, queued: 2}, withoutBaseline(s))

	s.now = s.now.Add(time.Millisecond)
	first.end()
	assert.True(t, third.woken)
	assert.False(t, fourth.woken)
	third.poll()
	assert.Equal(t, rule.Pass, third.decision)
	second.end()
	fourth.poll()
	assert.Equal(t, rule.Pass, fourth.decision)
	third.end()
	fourth.end()
	assert.Equal(t, 0, s.gauges().inFlight+s.gauges().queued)
}

// withoutBaseline returns the gauges, of which the baseline is not known.
func withoutBaseline(s *gateScene) gates {
	g := s.gauges()
	require.True(s.t, math.IsNaN(g.baseline))
	g.baseline = 0
	return g
}

func TestMoreImportantCallsPassFirst(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	first := s.call(rule.PriorityNormal)
	s.call(rule.PriorityNormal)
	low, normal, critical := s.call(rule.PriorityLow), s.call(rule.PriorityNormal), s.call(rule.PriorityCritical)
	for _, c := range []*gateCall{critical, normal, low} {
		require.Equal(t, rule.Wait, c.decision)
		first.end()
		require.True(t, c.woken)
		c.poll()
		require.Equal(t, rule.Pass, c.decision)
		first = c
	}
}

func TestFullQueueDisplacesTheNewestCallOfTheLowestPriority(t *testing.T) {
	t.Parallel()
	s := overloaded(t, adaptive.Rule{MaxDelay: 10 * time.Millisecond})
	shed := s.gauges().shed
	var low []*gateCall
	for {
		c := s.call(rule.PriorityLow)
		if c.decision == rule.Block {
			break
		}
		low = append(low, c)
	}
	require.NotEmpty(t, low)
	newest := low[len(low)-1]
	for !newest.woken {
		require.Equal(t, rule.Wait, s.call(rule.PriorityHigh).decision)
	}
	newest.poll()
	assert.Equal(t, rule.Block, newest.decision)
	assert.Equal(t, shed+2, s.gauges().shed)
}

// overloaded returns a scene in which the limiter knows how much the service can do, the limit is
// reached, and nobody waits.
func overloaded(t *testing.T, r adaptive.Rule) *gateScene {
	t.Helper()
	s := newGateScene(t, r)
	s.run(2400, 8, 10*time.Millisecond, 5*time.Second)
	for s.gauges().inFlight < s.gauges().limit {
		require.Equal(t, rule.Pass, s.call(rule.PriorityNormal).decision)
	}
	return s
}

func TestWaitEndsAfterOneAndAHalfTimesMaxDelay(t *testing.T) {
	t.Parallel()
	s := overloaded(t, adaptive.Rule{MaxDelay: 40 * time.Millisecond})
	c := s.call(rule.PriorityNormal)
	require.Equal(t, 60*time.Millisecond, c.poll())
	s.now = s.now.Add(60*time.Millisecond - 1)
	require.Equal(t, time.Duration(1), c.poll())
	s.now++
	c.poll()
	assert.Equal(t, rule.Block, c.decision)
	assert.Equal(t, 0, s.gauges().queued)
}

// Nobody knows yet whether more calls under way do harm: they wait for a moment, and the limit
// is raised.
func TestNoCallIsRefusedBeforeAShortageIsKnown(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	s.call(rule.PriorityNormal)
	s.call(rule.PriorityNormal)
	c := s.call(rule.PriorityNormal)
	require.Equal(t, 50*time.Millisecond, c.poll())
	s.now = s.now.Add(50 * time.Millisecond)
	c.poll()
	assert.Equal(t, rule.Pass, c.decision)
	assert.Equal(t, 4, s.gauges().limit)
}

// Nothing is known to be short, but more calls than maxLimit may not be under way: they wait as long as calls may.
func TestCallsDoNotWaitForLongAtTheGreatestLimit(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2, MaxLimit: 4, MaxDelay: 40 * time.Millisecond})
	var calls []*gateCall
	for range 6 {
		calls = append(calls, s.call(rule.PriorityNormal))
	}
	s.now = s.now.Add(50 * time.Millisecond) // the limit is raised
	for _, c := range calls[2:4] {
		c.poll()
		require.Equal(t, rule.Pass, c.decision)
	}
	last := calls[5]
	require.Equal(t, 50*time.Millisecond, last.poll())
	s.now = s.now.Add(50 * time.Millisecond)
	require.Equal(t, 10*time.Millisecond, last.poll(), "since then")
	s.now = s.now.Add(10 * time.Millisecond)
	last.poll()
	assert.Equal(t, rule.Block, last.decision)
	assert.Equal(t, 4, s.gauges().inFlight)
}

func TestCallThatGivesUpLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	first := s.call(rule.PriorityNormal)
	s.call(rule.PriorityNormal)
	waits := s.call(rule.PriorityNormal)
	granted := s.call(rule.PriorityHigh)
	first.end()
	require.True(t, granted.woken)
	waits.waiter.Leave(s.now)
	assert.Equal(t, 0, s.gauges().queued)
	granted.waiter.Leave(s.now) // it has not collected what was granted to it
	assert.Equal(t, 1, s.gauges().inFlight)
	assert.Equal(t, rule.Pass, s.call(rule.PriorityNormal).decision)
}

func TestCallsThatAreNotInboundDoNotCount(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{Inbound: true, InitialLimit: 2})
	for range 10 {
		c := s.callBy(s.limiter, rule.PriorityNormal, false)
		require.Equal(t, rule.Pass, c.decision)
		if s.now++; s.now%2 == 0 {
			c.end()
		} else {
			s.limiter.GiveBack(s.now, c.ticket, 1)
		}
	}
	assert.Equal(t, 0, s.gauges().inFlight)
}

func TestGiveBackIsNoEnd(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	for range 1000 {
		c := s.call(rule.PriorityNormal)
		require.Equal(t, rule.Pass, c.decision)
		s.limiter.GiveBack(s.now, c.ticket, 1)
		s.now = s.now.Add(time.Millisecond)
	}
	g := s.gauges()
	assert.Equal(t, 0, g.inFlight)
	assert.True(t, math.IsNaN(g.baseline), "nothing has been learned")
}

func TestReloadKeepsTheLimitAndTheCalls(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 10})
	s.run(2000, 4, 10*time.Millisecond, 20*time.Second)
	before := s.gauges()
	require.InDelta(t, 0.010, before.baseline, 0.002)
	require.Less(t, before.limit, 10)
	var calls []*gateCall
	for range before.limit + 1 {
		calls = append(calls, s.call(rule.PriorityNormal))
	}
	waits := calls[before.limit]
	require.Equal(t, rule.Wait, waits.decision)

	s.reload(func(r *adaptive.Rule) { r.MaxDelay = 90 * time.Millisecond })
	after := s.gauges()
	assert.Equal(t, before.limit, after.limit)
	assert.InDelta(t, before.baseline, after.baseline, 0)
	assert.Equal(t, before.limit, after.inFlight)
	assert.Equal(t, 1, after.queued)
	waits.poll()
	require.Equal(t, rule.Wait, waits.decision)

	s.reload(func(r *adaptive.Rule) { r.MinLimit, r.InitialLimit = 50, 50 })
	assert.Equal(t, 50, s.gauges().limit)
	assert.True(t, waits.woken, "the limit is not reached any more")
	s.reload(func(r *adaptive.Rule) { r.MinLimit, r.InitialLimit, r.MaxLimit = 1, 1, 3 })
	assert.Equal(t, 3, s.gauges().limit)
	waits.poll()
	for _, c := range calls {
		c.end()
	}
	assert.Equal(t, 0, s.gauges().inFlight)
}

func TestRetiredRuleReleasesItsWaitingCalls(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	first := s.call(rule.PriorityNormal)
	s.call(rule.PriorityNormal)
	c := s.call(rule.PriorityNormal)
	s.limiter.Retire(s.now)
	require.True(t, c.woken)
	c.poll()
	assert.Equal(t, rule.Stale, c.decision)
	assert.Equal(t, rule.Stale, s.call(rule.PriorityNormal).decision, "another rule decides, or none")
	first.end()
	s.reload(func(*adaptive.Rule) {})
	assert.Equal(t, rule.Pass, s.call(rule.PriorityNormal).decision, "it is back")
}

func TestRuleThatIsForOthersReleasesItsWaitingCalls(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*adaptive.Rule){
		"shadow":  func(r *adaptive.Rule) { r.Shadow = true },
		"origin":  func(r *adaptive.Rule) { r.Origin = "mobile" },
		"inbound": func(r *adaptive.Rule) { r.Inbound = true },
	} {
		s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
		s.call(rule.PriorityNormal)
		s.call(rule.PriorityNormal)
		c := s.call(rule.PriorityNormal)
		s.reload(change)
		c.poll()
		assert.Equal(t, rule.Stale, c.decision, name)
	}
}

func TestIdleLatencyLimiterHasHadNoCallForAMinute(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 2})
	c := s.call(rule.PriorityNormal)
	s.now = s.now.Add(time.Hour)
	assert.False(t, s.limiter.Idle(s.now))
	c.end()
	assert.False(t, s.limiter.Idle(s.now))
	s.now = s.now.Add(2 * time.Minute)
	assert.True(t, s.limiter.Idle(s.now))
}

// A clock of a program may stand still; times of concurrent calls are not in order.
func TestStrangeTimesLeaveTheLimitWithinItsBounds(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"still": 0, "back": -time.Millisecond, "far ahead": 30 * time.Hour} {
		s := newGateScene(t, adaptive.Rule{InitialLimit: 3, MinLimit: 2, MaxLimit: 9})
		var calls []*gateCall
		for i := range longtest.Of(1000, 5000) {
			s.now = s.now.Add(step)
			if c := s.call(rule.PriorityNormal); c.decision == rule.Pass {
				calls = append(calls, c)
			} else if c.decision == rule.Wait {
				c.waiter.Leave(s.now)
			}
			if i%2 == 0 && len(calls) > 0 {
				calls[0].end()
				calls = calls[1:]
			}
			limit := s.gauges().limit
			require.True(t, limit >= 2 && limit <= 9, "%s: %d", name, limit)
		}
		for _, c := range calls {
			c.end()
		}
		require.Equal(t, 0, s.gauges().inFlight, name)
	}
}

// Streams that never end would otherwise take all places for good.
func TestCallsThatNeverEndDoNotBlockTheOthersForGood(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{InitialLimit: 4})
	for range 4 {
		require.Equal(t, rule.Pass, s.call(rule.PriorityNormal).decision)
	}
	passed := 0
	for range 200 {
		s.now = s.now.Add(200 * time.Millisecond)
		c := s.call(rule.PriorityNormal)
		if c.decision == rule.Wait {
			for c.decision == rule.Wait {
				if after := c.poll(); c.decision == rule.Wait {
					s.now = s.now.Add(after)
				}
			}
		}
		if c.decision == rule.Pass {
			passed++
			s.now = s.now.Add(time.Millisecond)
			c.end()
		}
	}
	assert.Greater(t, passed, 100)
}

func TestInstantCallsAreNoProblem(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{})
	for range 100_000 {
		c := s.call(rule.PriorityNormal)
		require.Equal(t, rule.Pass, c.decision)
		c.end()
		s.now += clock.Instant(10 * time.Microsecond)
	}
	assert.InDelta(t, 0, s.gauges().baseline, 1e-5)
	assert.Equal(t, 20, s.gauges().limit)
}

func TestMaxDelayBelowTheBaselineStillLetsTheServiceWork(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{MaxDelay: time.Millisecond})
	passed, refused := s.run(160, 8, 100*time.Millisecond, time.Minute) // twice the capacity
	assert.InDelta(t, 80*60, passed, 400)
	assert.InDelta(t, 80*60, refused, 400)
}

func TestLimitFindsTheCapacityOfTheService(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	t.Parallel()
	for _, workers := range []int{1, 3, 8, 40} {
		s := newGateScene(t, adaptive.Rule{})
		capacity := float64(workers) * 100
		s.run(3*capacity, workers, 10*time.Millisecond, 5*time.Second)
		passed, _ := s.run(3*capacity, workers, 10*time.Millisecond, 10*time.Second)
		assert.InDelta(t, 1, float64(passed)/(10*capacity), 0.05, "%d workers", workers)
		limit := s.gauges().limit
		assert.True(t, limit >= workers && limit <= 2*workers+3, "%d workers: limit %d", workers, limit)
		assert.InDelta(t, 0.010, s.gauges().baseline, 0.003, "%d workers", workers)
	}
}

// A limit that has been found is found again after the service was slow, and after most
// calls failed.
func TestLimitRecovers(t *testing.T) {
	t.Parallel()
	s := newGateScene(t, adaptive.Rule{})
	s.run(1600, 8, 10*time.Millisecond, 10*time.Second)
	before := s.gauges().limit
	s.run(1600, 8, 80*time.Millisecond, 10*time.Second)
	s.run(1600, 8, 10*time.Millisecond, 20*time.Second)
	assert.InEpsilon(t, before, s.gauges().limit, 0.25)
}

func TestNameThatGetsALimiterOfItsOwnBeginsWithTheSharedLimit(t *testing.T) {
	t.Parallel()
	shared := newGateScene(t, adaptive.Rule{})
	shared.run(1600, 8, 10*time.Millisecond, 5*time.Second)
	own := newGateScene(t, adaptive.Rule{})
	own.limiter.(optional.Inheritor).Inherit(shared.limiter, own.now)
	assert.Equal(t, shared.gauges().limit, own.gauges().limit)
}
