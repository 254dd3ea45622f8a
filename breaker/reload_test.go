package breaker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/rule"
)

func TestReloadKeepsTheWindow(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.bad(3)
	under := s.pass()
	s.reload(func(r *breaker.Rule) { r.MinCalls, r.Threshold, r.OpenFor = 6, 0.8, time.Second })
	s.is(breaker.Closed, 3, 3)
	under.fail() // it passed by the old version
	s.is(breaker.Closed, 4, 4)
	s.good(1)
	s.bad(1)
	s.is(breaker.Open, 0, 0) // 5 of 6 is more than 0.8
	s.refused(time.Second)
}

func TestReloadIsJudgedWhenTheNextCallEnds(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.bad(3)
	s.reload(func(r *breaker.Rule) { r.MinCalls = 2 })
	s.is(breaker.Closed, 3, 3)
	s.good(1)
	s.is(breaker.Open, 0, 0)
}

func TestReloadBetweenErrorStrategiesKeepsTheWindow(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.bad(3)
	s.reload(func(r *breaker.Rule) { r.Strategy, r.Threshold = breaker.ErrorCount, 4 })
	s.is(breaker.Closed, 3, 3)
	s.bad(1)
	s.is(breaker.Open, 0, 0)
}

func TestReloadThatCountsOtherwiseEmptiesTheWindow(t *testing.T) {
	t.Parallel()
	changes := map[string]func(r *breaker.Rule){
		"another window": func(r *breaker.Rule) { r.Window = 20 * time.Second },
		"slow instead of failed": func(r *breaker.Rule) {
			r.Strategy, r.SlowAfter = breaker.SlowRatio, time.Second
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, errorRatio())
			s.bad(3)
			under := s.pass()
			s.reload(change)
			s.is(breaker.Closed, 0, 0)
			under.succeed()
			s.is(breaker.Closed, 1, 0)
			s.reported()
		})
	}
}

func TestReloadKeepsTheBreakerOpen(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.pass().fail()
	s.refused(10 * time.Second)
	s.reload(func(r *breaker.Rule) { r.Threshold = 0.9 })
	s.refused(10 * time.Second)
	s.reload(func(r *breaker.Rule) { r.OpenFor = 6 * time.Second })
	s.refused(12 * time.Second) // still doubled once
	s.reload(func(r *breaker.Rule) { r.OpenFor, r.MaxOpenFor = time.Second, 0 })
	s.refused(time.Second)
	s.reload(func(r *breaker.Rule) { r.OpenFor, r.Window = time.Minute, time.Minute })
	s.refused(time.Minute)
	s.reported("0s closed to open", "5s open to halfOpen", "5s halfOpen to open")
}

func TestReloadToGrowingOpenTimeBeginsWithOpenFor(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.MaxOpenFor = 0
	s := newService(t, r)
	s.open()
	for range 3 { // it has not been doubled
		s.now = s.now.Add(5 * time.Second)
		s.pass().fail()
	}
	s.reload(func(r *breaker.Rule) { r.MaxOpenFor = time.Minute })
	s.refused(5 * time.Second)
}

func TestReloadKeepsProbesUnderWay(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	old := []*call{s.pass(), s.pass()}
	s.refused(0)
	s.reload(func(r *breaker.Rule) { r.Probes = 4 })
	more := []*call{s.pass(), s.pass()}
	s.refused(0)
	more[0].succeed()
	s.reload(func(r *breaker.Rule) { r.Probes = 1 })
	s.refused(0)
	old[0].succeed()
	old[1].succeed()
	s.refused(0) // all who were let through have to end well
	more[1].succeed()
	s.is(breaker.Closed, 0, 0)
}

func TestReloadToFewerProbesClosesWhenAllHaveEndedWell(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.good(1)
	s.is(breaker.HalfOpen, 0, 0)
	s.at(6 * time.Second)
	s.reload(func(r *breaker.Rule) { r.Probes = 1 })
	s.is(breaker.Closed, 0, 0)
	s.reported("0s closed to open", "5s open to halfOpen", "6s halfOpen to closed")
}

func TestReloadToFewerProbesClosesWhenTheLastIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.good(1)
	last := s.pass()
	s.reload(func(r *breaker.Rule) { r.Probes = 1 })
	s.refused(0)
	last.giveBack()
	s.is(breaker.Closed, 0, 0)
}

func TestReloadToAShorterTimeoutTakesEffectAtOnceAndNotBefore(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	s.pass()
	s.at(7 * time.Second)
	s.reload(func(r *breaker.Rule) { r.ProbeTimeout = time.Second })
	s.is(breaker.HalfOpen, 0, 0) // it may end at this instant
	s.at(20 * time.Second)
	s.is(breaker.Open, 0, 0)
	s.reported("0s closed to open", "5s open to halfOpen", "7s halfOpen to open")
}

func TestCallWithANewVersionBringsItIntoForce(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.bad(3)
	old := s.limiter
	s.adopt(func(r *breaker.Rule) { r.MinCalls = 100 })
	_, decision := old.Acquire(s.request())
	assert.Equal(t, rule.Pass, decision, "nobody has asked the new one")
	c := s.pass()
	_, decision = old.Acquire(s.request())
	assert.Equal(t, rule.Stale, decision)
	old.Activate(s.now) // is too late
	_, decision = old.Acquire(s.request())
	assert.Equal(t, rule.Stale, decision)
	c.fail()
	s.is(breaker.Closed, 4, 4)
}

func TestVersionsThatNeverCameIntoForceDoNotMatter(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	first := s.limiter
	s.adopt(func(r *breaker.Rule) { r.Probes = 1000 }) // more places than any other version
	skipped := s.limiter
	s.limiter = first
	s.reload(func(r *breaker.Rule) { r.Probes = 3 })
	s.pass()
	_, decision := skipped.Acquire(s.request())
	assert.Equal(t, rule.Stale, decision)
	s.pass()
	s.pass().succeed()
	s.refused(0)
}

func TestManyVersionsShareOneState(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	var calls []*call
	for i := range 100 {
		calls = append(calls, s.pass())
		s.reload(func(r *breaker.Rule) { r.MinCalls = 100 + i })
	}
	for i, c := range calls {
		s.is(breaker.Closed, i, i)
		c.fail()
	}
	s.bad(99)
	s.is(breaker.Open, 0, 0)
	for _, c := range calls {
		_, decision := c.limiter.Acquire(s.request())
		assert.Equal(t, rule.Stale, decision)
		assert.Equal(t, 5*time.Second, c.limiter.RetryAfter(s.request()))
	}
}

func TestRuleOfAnotherKindCannotBeAdopted(t *testing.T) {
	t.Parallel()
	var other struct{ rule.Limiter }
	r := breaker.Kind().Of(breaker.Kind().WithDefaults(errorRatio()))
	assert.Nil(t, r.Adopt(other, rule.Env{}))
}

func TestForcedStates(t *testing.T) {
	t.Parallel()
	forced := func(s *service) float64 { return s.limiter.Status(s.now).Gauges[3] }
	s := newService(t, errorRatio())
	before := s.pass()
	s.control(breaker.Closed)
	s.bad(1000) // counts for nothing
	s.is(breaker.Closed, 0, 0)
	assert.InDelta(t, 1, forced(s), 0)
	s.reported()

	during := s.pass()
	s.at(time.Second)
	s.control(breaker.Open)
	s.refused(rule.Never)
	s.at(1000 * time.Hour)
	s.refused(rule.Never)
	s.is(breaker.Open, 0, 0)
	assert.InDelta(t, 1, forced(s), 0)

	s.control("")
	before.fail()
	during.fail()
	s.is(breaker.Closed, 0, 0)
	assert.InDelta(t, 0, forced(s), 0)
	s.open()
	s.reported("1s closed to open", "1000h0m0s open to closed", "1000h0m0s closed to open")
}

func TestForcedStateSurvivesReloads(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.control(breaker.Open)
	s.reload(func(r *breaker.Rule) { r.Window = time.Minute })
	s.refused(rule.Never)
	s.control(breaker.Closed)
	s.reload(func(r *breaker.Rule) { r.Threshold = 0.001 })
	s.bad(100)
	s.is(breaker.Closed, 0, 0)
	s.control("")
	s.bad(3)
	s.is(breaker.Closed, 3, 3)
}

func TestForcingFromOtherStates(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.open()
	s.at(5 * time.Second)
	probe := s.pass()
	s.control(breaker.Closed)
	probe.fail()
	s.control("")
	s.open()
	s.refused(5 * time.Second)
	s.control(breaker.Open)
	s.control(breaker.Open)
	s.at(time.Minute)
	s.refused(rule.Never)
	s.reported("0s closed to open", "5s open to halfOpen", "5s halfOpen to closed", "5s closed to open")
}

func TestReleaseOfWhatIsNotForcedChangesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, errorRatio())
	s.bad(3)
	s.control("")
	s.control("ajar")
	s.is(breaker.Closed, 3, 3)
	s.bad(1)
	s.control("")
	s.refused(5 * time.Second)
	s.reported("0s closed to open")
}
