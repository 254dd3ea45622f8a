package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
)

func TestDelayedCallPassesWhenItsDelayIsOver(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Delay: 200 * ms})
	w := join(t, l, call(1, 0), nil)
	assert.Equal(t, []float64{1, 1, 0}, l.Status(epoch).Gauges)
	after, decision := poll(w, 0)
	assert.Equal(t, 200*ms, after)
	assert.Equal(t, rule.Wait, decision)
	after, decision = poll(w, 200*ms-1)
	assert.Equal(t, time.Duration(1), after)
	assert.Equal(t, rule.Wait, decision)
	_, decision = poll(w, 200*ms)
	assert.Equal(t, rule.Pass, decision)
	assert.Equal(t, []float64{0, 1, 0}, l.Status(epoch).Gauges)
	assert.True(t, l.Idle(epoch))
}

func TestDelayedCallIsRefusedAfterItsDelayIfTheRuleAborts(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Delay: 200 * ms, Abort: fault.Abort{HTTP: 503}})
	w := join(t, l, call(1, 0), nil)
	_, decision := poll(w, 200*ms)
	assert.Equal(t, rule.Block, decision)
}

func TestAbortWithoutDelayRefusesAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Abort: fault.Abort{GRPC: "ABORTED"}})
	ticket, decision := l.Acquire(call(1, 0))
	assert.Equal(t, rule.Block, decision)
	assert.Equal(t, rule.RetryUnknown, ticket)
	assert.Zero(t, l.RetryAfter(call(1, 0)))
	assert.Equal(t, []float64{0, 1, 0}, l.Status(epoch).Gauges)
}

func TestNothingIsInjectedAtTheEndOfTheRule(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]fault.Rule{
		"abort": {Abort: fault.Abort{HTTP: 503}, Until: until(second)},
		"delay": {Delay: 100 * ms, Until: until(second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, changes := newLimiter(t, r)
			assert.NotEqual(t, rule.Pass, decide(l, call(1, second-1)))
			assert.Equal(t, rule.Pass, decide(l, call(2, second)))
			assert.Equal(t, rule.Pass, decide(l, call(3, second-1)), "the end has been seen")
			assert.Equal(t, fault.Ended, l.Status(epoch.Add(second)).State)
			assert.Equal(t, []string{"1s active ended"}, []string(*changes))
		})
	}
}

func TestEndIsReportedForWhenItWasWhoeverFindsItLater(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: 100 * ms, Until: until(second)})
	assert.Equal(t, fault.Active, l.Status(epoch.Add(second-1)).State)
	assert.Equal(t, fault.Ended, l.Status(epoch.Add(time.Minute)).State)
	assert.Equal(t, []string{"1s active ended"}, []string(*changes))
}

func TestDelayEndsWithTheRuleWithoutAbort(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"cut": 600 * ms, "over at the same instant": 500 * ms} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newLimiter(t, fault.Rule{Delay: delay, Abort: fault.Abort{HTTP: 503}, Until: until(second)})
			woken := 0
			first := join(t, l, call(1, 500*ms), func() { woken++ })
			join(t, l, call(2, 500*ms), func() { woken++ })
			after, decision := poll(first, 500*ms)
			assert.Equal(t, 500*ms, after)
			assert.Equal(t, rule.Wait, decision)
			_, decision = poll(first, second)
			assert.Equal(t, rule.Pass, decision)
			assert.Equal(t, 2, woken)
		})
	}
}

func TestRuleThatHasEndedBeforeItIsLoadedInjectsNothing(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: second, Until: until(0)})
	assert.Equal(t, rule.Pass, decide(l, call(1, 0)))
	assert.Equal(t, fault.Ended, l.Status(epoch).State)
	assert.Empty(t, *changes)
}

func TestRuleThatIsTurnedOffLetsDelayedCallsGoOnAtOnce(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: second, Abort: fault.Abort{HTTP: 503}})
	var woken []int
	var waiters []rule.Waiter
	for i := range 3 {
		waiters = append(waiters, join(t, l, call(uint64(i), 0), func() { woken = append(woken, i) }))
	}
	l.Control(epoch.Add(ms), fault.Off)
	l.Control(epoch.Add(2*ms), fault.Off)
	assert.Equal(t, []int{0, 1, 2}, woken, "in the order in which they came")
	for _, w := range waiters {
		_, decision := poll(w, ms)
		assert.Equal(t, rule.Pass, decision)
	}
	assert.Equal(t, rule.Pass, decide(l, call(1, ms)))
	assert.Equal(t, fault.Off, l.Status(epoch.Add(ms)).State)

	l.Control(epoch.Add(3*ms), "")
	assert.Equal(t, rule.Wait, decide(l, call(1, ms)))
	assert.Equal(t, []string{"1ms active off", "3ms off active"}, []string(*changes))
}

func TestRuleThatIsTurnedOffBetweenAcquireAndJoinDelaysNobody(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Delay: second})
	assert.Equal(t, rule.Wait, decide(l, call(1, 0)))
	l.Control(epoch, fault.Off)
	_, _, decision := l.Join(call(1, 0), rule.Patience{Wake: func() {}})
	assert.Equal(t, rule.Pass, decision)
}

func TestRuleThatIsTurnedOffStaysSoBeyondItsEnd(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: second, Until: until(time.Minute)})
	l.Control(epoch, fault.Off)
	assert.Equal(t, fault.Off, l.Status(epoch.Add(time.Hour)).State)
	l.Control(epoch.Add(time.Hour), "")
	assert.Equal(t, fault.Ended, l.Status(epoch.Add(time.Hour)).State)
	assert.Equal(t, []string{"0s active off", "1h0m0s off ended"}, []string(*changes))
}

func TestRuleThatBeginsTurnedOffInjectsNothing(t *testing.T) {
	t.Parallel()
	var c changes
	env := c.env(1)
	env.Forced = fault.Off
	l := build(t, fault.Rule{Delay: second}, env)
	assert.Equal(t, rule.Pass, decide(l, call(1, 0)))
	assert.Equal(t, fault.Off, l.Status(epoch).State)
}

func TestChangedRuleLetsDelayedCallsGoOnAndKeepsItsState(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: time.Minute})
	woken := 0
	w := join(t, l, call(1, 0), func() { woken++ })
	next := adopt(t, l, fault.Rule{Delay: 10 * ms, Until: until(time.Minute)}, changes.env(2))
	_, decision := poll(w, ms)
	assert.Equal(t, rule.Wait, decision, "not in force yet")
	next.Activate(epoch.Add(ms))
	assert.Equal(t, 1, woken)
	_, decision = poll(w, ms)
	assert.Equal(t, rule.Pass, decision)
	assert.Equal(t, rule.Stale, decide(l, call(2, ms)), "the former version")
	_, _, decision = l.Join(call(2, ms), rule.Patience{})
	assert.Equal(t, rule.Stale, decision)

	after, _ := poll(join(t, next, call(3, 2*ms), nil), 2*ms)
	assert.Equal(t, 10*ms, after)
	assert.Equal(t, []float64{1, 2, 0}, l.Status(epoch.Add(ms)).Gauges, "counted on")
	l.Activate(epoch.Add(3 * ms))
	assert.Equal(t, rule.Wait, decide(next, call(4, 3*ms)), "a former version stays so")

	next.Control(epoch.Add(4*ms), fault.Off)
	last := adopt(t, next, fault.Rule{Delay: 10 * ms}, changes.env(3))
	assert.Equal(t, rule.Pass, decide(last, call(5, 5*ms)), "still turned off; asked before it is activated")
	assert.Equal(t, rule.Stale, decide(next, call(6, 5*ms)))
}

func TestRuleIsActiveAgainWhenItsEndIsPutOff(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: second, Until: until(second)})
	assert.Equal(t, rule.Pass, decide(l, call(1, second)))
	next := adopt(t, l, fault.Rule{Delay: second, Until: until(time.Minute)}, changes.env(2))
	assert.Equal(t, rule.Wait, decide(next, call(1, 2*second)))
	assert.Equal(t, []string{"1s active ended", "2s ended active"}, []string(*changes))
}

func TestRemovedRuleLetsDelayedCallsGoOn(t *testing.T) {
	t.Parallel()
	l, changes := newLimiter(t, fault.Rule{Delay: time.Minute})
	woken := 0
	w := join(t, l, call(1, 0), func() { woken++ })
	l.Retire(epoch.Add(ms))
	assert.Equal(t, 1, woken)
	_, decision := poll(w, ms)
	assert.Equal(t, rule.Pass, decision)
	_, _, decision = l.Join(call(2, ms), rule.Patience{Wake: func() {}})
	assert.Equal(t, rule.Stale, decision, "one that asked before")
	back := adopt(t, l, fault.Rule{Delay: time.Minute}, changes.env(2))
	assert.NotNil(t, join(t, back, call(3, ms), nil), "the rule is back")
	l.Retire(epoch.Add(2 * ms))
	assert.Equal(t, rule.Wait, decide(back, call(4, 2*ms)), "only the version in force ends the rule")
}

func TestCallThatGivesUpLeavesItsDelay(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Delay: time.Minute})
	var waiters []rule.Waiter
	for i := range 3 {
		waiters = append(waiters, join(t, l, call(uint64(i), 0), func() { t.Error("woken") }))
	}
	for _, i := range []int{1, 2, 0} { // in the middle, at the end, the last one
		waiters[i].Leave(epoch)
		waiters[i].Leave(epoch)
	}
	assert.True(t, l.Idle(epoch))
	l.Control(epoch, fault.Off)
}

func TestNoMoreCallsAreDelayedThanTheBound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		abort  fault.Abort
		beyond rule.Decision
		counts []float64
	}{
		"delay":           {fault.Abort{}, rule.Pass, []float64{fault.MaxDelayed, fault.MaxDelayed, 1}},
		"delay and abort": {fault.Abort{HTTP: 503}, rule.Block, []float64{fault.MaxDelayed, fault.MaxDelayed + 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newLimiter(t, fault.Rule{Delay: time.Minute, Abort: test.abort})
			first := join(t, l, call(0, 0), nil)
			for i := range fault.MaxDelayed - 1 {
				join(t, l, call(uint64(i+1), 0), nil)
			}
			_, _, decision := l.Join(call(1, 0), rule.Patience{Wake: func() {}})
			assert.Equal(t, test.beyond, decision)
			assert.Equal(t, test.counts, l.Status(epoch).Gauges)
			first.Leave(epoch)
			join(t, l, call(1, 0), nil)
		})
	}
}

func TestShadowChoosesCallsButCountsNoInjection(t *testing.T) {
	t.Parallel()
	l, _ := newLimiter(t, fault.Rule{Delay: second, Shadow: true})
	assert.Equal(t, rule.Wait, decide(l, call(1, 0)))
	l, _ = newLimiter(t, fault.Rule{Abort: fault.Abort{HTTP: 500}, Shadow: true})
	assert.Equal(t, rule.Block, decide(l, call(1, 0)))
	assert.Equal(t, []float64{0, 0, 0}, l.Status(epoch).Gauges)
}

func TestAcquireDoesNotAllocate(t *testing.T) {
	for name, r := range map[string]fault.Rule{
		"chosen or not": {Percent: 50, Abort: fault.Abort{HTTP: 503}},
		"ended":         {Abort: fault.Abort{HTTP: 503}, Until: until(0)},
	} {
		l, _ := newLimiter(t, r)
		number := uint64(0)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			number++
			l.Acquire(call(number, 0))
		}), name)
	}
}
