package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const ms = time.Millisecond

func TestBreakerOpensWhenTheThresholdIsReachedExactly(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		strategy  breaker.Strategy
		threshold float64
		minCalls  int
		outcomes  string // of calls, one after the other: the last one opens the breaker
	}{
		"5 of 10 at 0.5":                    {breaker.ErrorRatio, 0.5, 10, "+++++-----"},
		"3 of 10 at 0.3":                    {breaker.ErrorRatio, 0.3, 10, "+++++++---"},
		"7 of 10 at 0.7":                    {breaker.ErrorRatio, 0.7, 10, "+++-------"},
		"1 of 3 at 0.3333333333333333":      {breaker.ErrorRatio, 1.0 / 3, 3, "++-"},
		"all of them at 1":                  {breaker.ErrorRatio, 1, 4, "----"},
		"by a call that ends well":          {breaker.ErrorRatio, 0.5, 4, "--++"},
		"later than at minCalls":            {breaker.ErrorRatio, 0.5, 2, "++++----"},
		"a number of failures":              {breaker.ErrorCount, 3, 0, "+-+-++-"},
		"a number, but not before minCalls": {breaker.ErrorCount, 2, 5, "--+++"},
		"the first failure":                 {breaker.ErrorCount, 1, 0, "+-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, breaker.Rule{
				Resource: "r", Strategy: test.strategy, Threshold: test.threshold, MinCalls: test.minCalls,
			})
			for i, outcome := range test.outcomes {
				s.is(breaker.Closed, i, countBad(test.outcomes[:i]))
				s.now++
				c := s.pass()
				s.now++
				if outcome == '-' {
					c.fail()
				} else {
					c.succeed()
				}
			}
			s.is(breaker.Open, 0, 0)
			s.reported(s.now.Sub(epoch).String() + " closed to open")
		})
	}
}

func countBad(outcomes string) (bad int) {
	for _, o := range outcomes {
		if o == '-' {
			bad++
		}
	}
	return bad
}

func TestBreakerStaysClosedBelowTheThreshold(t *testing.T) {
	t.Parallel()
	s := newService(t, breaker.Rule{Resource: "r", Threshold: 0.334, MinCalls: 3})
	for range 1000 { // a third of the calls fails
		s.good(2)
		s.bad(1)
	}
	s.is(breaker.Closed, 3000, 1000)
	s.reported()
}

// What decides is the decimal, not the nearest binary number: those of 0.3 and 0.7 are a
// little less than 3/10 and 7/10, that of 0.1 is more than 1/10.
func TestBreakerComparesRatiosWithoutRounding(t *testing.T) {
	t.Parallel()
	for tenths := 1; tenths <= 10; tenths++ {
		for _, calls := range []int{10, 1000, 10_000} {
			s := newService(t, breaker.Rule{Resource: "r", Threshold: float64(tenths) / 10, MinCalls: calls})
			limit := calls / 10 * tenths
			s.good(calls - limit)
			s.bad(limit - 1)
			s.is(breaker.Closed, calls-1, limit-1)
			s.bad(1)
			s.is(breaker.Open, 0, 0)
		}
	}
}

func TestSlowRatioCountsOnlyWhatTakesLonger(t *testing.T) {
	t.Parallel()
	s := newService(t, breaker.Rule{
		Resource: "r", Strategy: breaker.SlowRatio, Threshold: 0.5, SlowAfter: 300 * ms, MinCalls: 4,
	})
	s.slow(300 * ms)
	s.bad(1) // fast
	s.is(breaker.Closed, 2, 0)
	s.slow(300*ms + 1)
	s.is(breaker.Closed, 3, 1)
	s.slow(time.Second)
	s.is(breaker.Open, 0, 0)
}

func TestErrorStrategiesIgnoreDurations(t *testing.T) {
	t.Parallel()
	for _, strategy := range []breaker.Strategy{breaker.ErrorRatio, breaker.ErrorCount} {
		s := newService(t, breaker.Rule{Resource: "r", Strategy: strategy, Threshold: 1})
		s.slow(time.Hour)
		s.is(breaker.Closed, 1, 0)
	}
}

func TestCallsCountWhenTheyEnd(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	calls := []*call{s.pass(), s.pass(), s.pass(), s.pass()}
	s.is(breaker.Closed, 0, 0)
	s.at(time.Hour) // much longer than the window
	for i, c := range calls {
		s.is(breaker.Closed, i, i)
		c.fail()
	}
	s.is(breaker.Open, 0, 0)
	s.reported("1h0m0s closed to open")
}

func TestWindowHasThePresentBucketAndNineBefore(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.at(999 * ms) // in the first bucket of a second
	s.bad(3)
	s.at(9*time.Second + 999*ms)
	s.is(breaker.Closed, 3, 3)
	s.at(10 * time.Second)
	s.is(breaker.Closed, 0, 0)
	s.bad(1) // 3 would be in a window that moves smoothly
	s.is(breaker.Closed, 1, 1)
	s.at(19*time.Second + 999*ms)
	s.good(2)
	s.is(breaker.Closed, 3, 1)
	s.at(20 * time.Second)
	s.is(breaker.Closed, 2, 0)
	s.at(time.Hour)
	s.is(breaker.Closed, 0, 0)
}

func TestBucketsAreAlignedToTheEpoch(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.Window = 70 * time.Second // of which a minute is no multiple
	s := newService(t, r)
	bucket := clock.Instant(7 * time.Second)
	end := (epoch/bucket + 1) * bucket
	s.now = end - 1
	s.bad(1)
	s.now = end + 9*bucket - 1
	s.is(breaker.Closed, 1, 1)
	s.now++
	s.is(breaker.Closed, 0, 0)
}

func TestOpenBreakerRefusesUntilItsTimeIsUp(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.at(time.Second)
	s.open()
	s.refused(5 * time.Second)
	s.at(2500 * ms)
	s.refused(3500 * ms)
	assert.InDelta(t, 3.5, s.limiter.Status(s.now).Gauges[2], 0)
	s.at(6*time.Second - 1)
	s.refused(1)
	s.at(6 * time.Second)
	s.pass()
	s.reported("1s closed to open", "6s open to halfOpen")
}

func TestNothingHappensWithoutCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(time.Minute)
	s.is(breaker.Open, 0, 0)
	assert.Zero(t, s.limiter.RetryAfter(s.request()))
	s.reported("0s closed to open")
	s.pass()
	s.is(breaker.HalfOpen, 0, 0)
	s.reported("1m0s open to halfOpen")
}

func TestHalfOpenLetsOnlyItsProbesPass(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	first := s.pass()
	first.succeed() // another does not take its place
	s.at(6 * time.Second)
	s.pass()
	s.refused(0)
	s.at(7 * time.Second)
	s.refused(0)
	s.is(breaker.HalfOpen, 0, 0)
}

func TestBreakerClosesWhenAllProbesEndWell(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	first, second := s.pass(), s.pass()
	s.at(6 * time.Second)
	second.succeed()
	s.refused(0)
	s.at(7 * time.Second)
	first.succeed()
	s.is(breaker.Closed, 0, 0)
	s.bad(3) // the window is empty
	s.is(breaker.Closed, 3, 3)
	s.reported("0s closed to open", "5s open to halfOpen", "7s halfOpen to closed")
}

func TestBadProbeOpensAtItsEndForTwiceAsLong(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio()) // 5 s, up to 15 s
	s.open()
	for _, step := range []struct{ probe, openFor time.Duration }{
		{5 * time.Second, 10 * time.Second},
		{16 * time.Second, 15 * time.Second},
		{32 * time.Second, 15 * time.Second},
	} {
		s.at(step.probe)
		s.pass().succeed()
		bad := s.pass()
		s.at(step.probe + time.Second)
		bad.fail()
		s.refused(step.openFor)
	}
	s.at(48 * time.Second)
	s.good(2)
	s.is(breaker.Closed, 0, 0)
	s.open()
	s.refused(5 * time.Second) // it begins anew
}

func TestOpenTimeDoesNotDoubleUnlessTheRuleSaysSo(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.MaxOpenFor = 0
	s := newService(t, r)
	s.open()
	for range 5 {
		s.now = s.now.Add(5 * time.Second)
		s.pass().fail()
		s.refused(5 * time.Second)
	}
}

func TestProbesAreJudgedByWhatTheRuleIsAbout(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.Strategy, r.SlowAfter, r.Probes = breaker.SlowRatio, 100*ms, 1
	s := newService(t, r)
	for range 4 {
		s.slow(101 * ms)
	}
	s.is(breaker.Open, 0, 0)
	s.at(10 * time.Second)
	s.slow(101 * ms)
	s.is(breaker.Open, 0, 0)
	s.at(30 * time.Second)
	s.pass().fail() // but fast
	s.is(breaker.Closed, 0, 0)
}

func TestProbeThatDoesNotEndOpensTheBreakerWhenItTimesOut(t *testing.T) {
	t.Parallel()
	find := map[string]func(s *service, lost, late *call){
		"found by a call":      func(s *service, _, _ *call) { s.refused(9 * time.Second) },
		"found by an end":      func(_ *service, _, late *call) { late.succeed() },
		"found by its own end": func(_ *service, lost, _ *call) { lost.succeed() },
		"found by Status":      func(s *service, _, _ *call) { s.is(breaker.Open, 0, 0) },
		"found by RetryAfter": func(s *service, _, _ *call) {
			assert.Equal(s.t, 9*time.Second, s.limiter.RetryAfter(s.request()))
		},
		"found by a give-back": func(_ *service, _, late *call) { late.giveBack() },
		"found by a control": func(s *service, _, _ *call) {
			s.control(breaker.Closed)
			s.control("")
			s.changes = s.changes[:len(s.changes)-1]
		},
		"found by a reload": func(s *service, _, _ *call) { s.reload(func(r *breaker.Rule) { r.ProbeTimeout = time.Hour }) },
	}
	for name, act := range find {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, errorRatio())
			s.open()
			s.at(5 * time.Second)
			lost := s.pass()
			s.at(6 * time.Second)
			late := s.pass()
			s.at(9 * time.Second)
			act(s, lost, late)
			s.reported("0s closed to open", "5s open to halfOpen", "8s halfOpen to open")
		})
	}
}

func TestCallsAfterATimeoutFindWhatWouldHaveHappened(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.pass()
	s.at(18 * time.Second) // at 8 s it timed out, and the 10 s after that are over
	s.pass()
	s.reported("0s closed to open", "5s open to halfOpen", "8s halfOpen to open", "18s open to halfOpen")
}

func TestProbeMayEndJustWhenItWouldTimeOut(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	first, second := s.pass(), s.pass()
	s.at(8 * time.Second)
	s.is(breaker.HalfOpen, 0, 0)
	first.succeed()
	second.succeed()
	s.is(breaker.Closed, 0, 0)
}

func TestProbeTimesOutBeforeCallsOfThatInstant(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.pass()
	s.at(8 * time.Second)
	s.refused(10 * time.Second)
	s.reported("0s closed to open", "5s open to halfOpen", "8s halfOpen to open")
}

func TestGivenBackProbeFreesItsPlace(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	for range 20 {
		s.pass().giveBack()
	}
	first, second := s.pass(), s.pass()
	s.refused(0)
	first.giveBack()
	third := s.pass()
	s.refused(0)
	second.succeed()
	third.succeed()
	s.is(breaker.Closed, 0, 0)
}

func TestIgnoredProbeFreesItsPlace(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	for range 20 {
		s.pass().ignored()
	}
	s.is(breaker.HalfOpen, 0, 0)
	s.good(2)
	s.is(breaker.Closed, 0, 0)
}

func TestIgnoredCallsDoNotCountUnlessTheyWereSlow(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.Strategy, r.SlowAfter = breaker.SlowRatio, 100*ms
	s := newService(t, r)
	c := s.pass()
	s.at(100 * ms)
	c.ignored()
	s.is(breaker.Closed, 0, 0)
	s.at(101 * ms)
	c = s.pass()
	s.at(202 * ms)
	c.ignored()
	s.is(breaker.Closed, 1, 1)
}

func TestFewerCallsThanProbesLeaveItHalfOpen(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.good(1)
	s.at(24 * time.Hour)
	s.is(breaker.HalfOpen, 0, 0)
	s.good(1)
	s.is(breaker.Closed, 0, 0)
}

func TestCallsOfAnEarlierStateDoNotCount(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	old := []*call{s.pass(), s.pass(), s.pass(), s.pass(), s.pass()}
	s.open()
	old[0].fail()
	s.is(breaker.Open, 0, 0)
	s.refused(5 * time.Second)

	s.at(5 * time.Second)
	probe := s.pass()
	old[1].fail()
	old[2].succeed()
	s.is(breaker.HalfOpen, 0, 0)
	s.pass().fail()
	s.at(15 * time.Second)
	first, second := s.pass(), s.pass()
	probe.fail() // of the probing before
	s.is(breaker.HalfOpen, 0, 0)
	probe.giveBack()
	s.refused(0)

	first.succeed()
	second.succeed()
	old[3].fail()
	old[4].succeed()
	s.is(breaker.Closed, 0, 0)
	s.reported("0s closed to open", "5s open to halfOpen", "5s halfOpen to open", "15s open to halfOpen", "15s halfOpen to closed")
}

func TestOutcomesThatArriveOutOfOrderCountInTheirBucket(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.at(20 * time.Second)
	s.good(1)
	s.at(19 * time.Second) // a bucket earlier: brought late
	s.bad(1)
	s.at(10 * time.Second) // no longer in the window
	s.bad(1)
	s.at(20 * time.Second)
	s.is(breaker.Closed, 2, 1)
	s.at(29 * time.Second)
	s.is(breaker.Closed, 1, 0)
}

func TestChangeIsNeverDatedBeforeThePreviousOne(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.at(10 * time.Second)
	s.open()
	s.at(15 * time.Second)
	probe := s.pass()
	s.at(14 * time.Second) // by the clock of another goroutine
	probe.fail()
	s.at(15 * time.Second)
	s.refused(10 * time.Second)
	s.reported("10s closed to open", "15s open to halfOpen", "15s halfOpen to open")
}

func TestBreakerCountsMoreCallsThanOneWordHolds(t *testing.T) {
	t.Parallel()
	s := newService(t, breaker.Rule{Resource: "r", Threshold: 0.5})
	const calls, bad = 1<<20 + 1000, 1 << 19
	s.good(calls - bad)
	s.bad(bad)
	s.is(breaker.Closed, calls, bad)
	s.bad(calls - 2*bad)
	s.is(breaker.Open, 0, 0)
}

func TestIdleBreakerIsAsGoodAsNew(t *testing.T) {
	t.Parallel()
	idle := func(s *service) bool { return s.limiter.Idle(s.now) }
	s := newService(t, errorRatio())
	assert.True(t, idle(s))
	s.good(1)
	assert.False(t, idle(s))
	s.at(10 * time.Second)
	assert.True(t, idle(s), "the window is empty again")

	s.open()
	s.at(time.Minute)
	assert.False(t, idle(s))
	s.at(15*time.Second + 10*time.Minute)
	assert.True(t, idle(s), "nobody has called for long")

	probe := s.pass()
	s.at(24 * time.Hour)
	assert.False(t, idle(s), "a probe is under way")
	probe.fail() // long after it has timed out
	s.at(48 * time.Hour)
	s.pass().giveBack()
	assert.False(t, idle(s))
	s.at(49 * time.Hour)
	assert.True(t, idle(s))
	s.control(breaker.Open)
	s.at(1000 * time.Hour)
	assert.False(t, idle(s), "an operator has forced it")
}

func TestIdleReportsNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.pass()
	s.changes = nil
	s.at(time.Hour)
	assert.False(t, s.limiter.Idle(s.now))
	s.reported()
}

func TestReportMayCallTheBreaker(t *testing.T) {
	t.Parallel()
	var states []string
	var l limiter
	r := breaker.Kind().WithDefaults(errorRatio())
	l = breaker.Kind().Of(r).NewLimiter(rule.Env{Now: epoch, Changed: func(at clock.Instant, _, to, _ string) {
		states = append(states, "begin "+to)
		l.Control(at, breaker.Closed)
		states = append(states, "end "+to, l.Status(at).State)
	}}).(limiter)
	l.Control(epoch, breaker.Open)
	assert.Equal(t, []string{"begin open", "end open", "closed", "begin closed", "end closed", "closed"}, states)
}

func TestBreakerGoesOnAfterAReportPanicked(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.observer = func() { panic("no observer") }
	require.PanicsWithValue(t, "no observer", func() { s.control(breaker.Open) })
	s.observer = func() {}
	s.refused(rule.Never)
	s.control("")
	s.reported("0s open to closed")
	s.good(1)
}

func TestPassingRefusingAndEndingAllocateNothing(t *testing.T) {
	s := newService(t, errorRatio())
	s.good(1000)
	var c rule.Call
	assert.Zero(t, testing.AllocsPerRun(1000, func() { // over many buckets
		c = s.request()
		ticket, _ := s.limiter.Acquire(c)
		s.limiter.Done(ticket, rule.Exit{Now: s.now, Start: s.now})
		s.now = s.now.Add(100 * ms)
	}))
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		ticket, _ := s.limiter.Acquire(s.request())
		s.limiter.GiveBack(s.now, ticket, 1)
	}))
	s.control(breaker.Open)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = s.limiter.Acquire(s.request())
		_ = s.limiter.RetryAfter(s.request())
	}))
}

func TestOpeningProbingAndClosingAllocateNothing(t *testing.T) {
	r := breaker.Kind().WithDefaults(errorRatio())
	l := breaker.Kind().Of(r).NewLimiter(rule.Env{Now: epoch, Changed: func(clock.Instant, string, string, string) {}}).(limiter)
	now := epoch
	call := func(failed bool) {
		ticket, _ := l.Acquire(rule.Call{Now: now})
		l.Done(ticket, rule.Exit{Now: now, Start: now, Failed: failed})
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for range r.MinCalls {
			call(true)
		}
		now = now.Add(r.OpenFor)
		call(true)
		now = now.Add(2 * r.OpenFor)
		for range r.Probes {
			call(false)
		}
	}))
	assert.Equal(t, breaker.Closed, l.Status(now).State)
}
