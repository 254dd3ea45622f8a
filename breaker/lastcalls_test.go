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

// ofLast returns a rule that opens when half of the last so many calls fail.
func ofLast(calls int) breaker.Rule {
	return breaker.Rule{Resource: "r", Threshold: 0.5, WindowCalls: calls, OpenFor: 5 * time.Second}
}

func TestLastCallsCountHoweverOldTheyAre(t *testing.T) {
	t.Parallel()
	s := newService(t, ofLast(10))
	s.bad(4)
	s.at(24 * time.Hour)
	s.good(5)
	s.is(breaker.Closed, 9, 4)
	s.bad(1)
	s.is(breaker.Open, 0, 0) // 5 of 10
	s.refused(5 * time.Second)
}

func TestOldestOfTheLastCallsGoes(t *testing.T) {
	t.Parallel()
	s := newService(t, ofLast(10))
	s.bad(4)
	s.good(6)
	s.is(breaker.Closed, 10, 4)
	s.bad(1) // in place of the first
	s.is(breaker.Closed, 10, 4)
	s.good(100)
	s.is(breaker.Closed, 10, 0)
}

func TestLastCallsCountInTheOrderOfTheirEnds(t *testing.T) {
	t.Parallel()
	s := newService(t, ofLast(2))
	first, second, third := s.pass(), s.pass(), s.pass()
	third.succeed()
	second.ignored() // neither
	first.succeed()
	s.is(breaker.Closed, 2, 0)
	s.bad(1)
	s.is(breaker.Open, 0, 0)
}

func TestSmallWindowOfCallsNeedsNoMoreCallsThanItHas(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 5, breaker.Kind().WithDefaults(ofLast(5)).MinCalls)
	assert.Equal(t, 20, breaker.Kind().WithDefaults(ofLast(100)).MinCalls)
	assert.Zero(t, breaker.Kind().WithDefaults(ofLast(5)).Window)
	assert.Equal(t, breaker.DefaultWindow, breaker.Kind().WithDefaults(ofLast(5)).ProbeTimeout)
}

func TestReloadKeepsTheLastCallsThatFit(t *testing.T) {
	t.Parallel()
	s := newService(t, ofLast(10))
	s.good(5)
	s.bad(4)
	s.reload(func(r *breaker.Rule) { r.WindowCalls, r.MinCalls = 5, 5 })
	s.is(breaker.Closed, 5, 4)
	s.reload(func(r *breaker.Rule) { r.WindowCalls, r.MinCalls, r.Threshold = 100, 10, 0.9 })
	s.is(breaker.Closed, 5, 4)
	s.reload(func(r *breaker.Rule) {
		r.Strategy, r.Threshold, r.WindowCalls, r.MinCalls = breaker.Consecutive, 6, 0, 0
	})
	s.is(breaker.Closed, 4, 4)
	s.bad(1)
	s.reload(func(r *breaker.Rule) { *r = errorRatio() })
	s.is(breaker.Closed, 0, 0) // those of a time are others
}

func TestFailuresInARowOpen(t *testing.T) {
	t.Parallel()
	s := newService(t, breaker.Rule{Resource: "r", Strategy: breaker.Consecutive, Threshold: 3, OpenFor: time.Second})
	s.bad(2)
	s.is(breaker.Closed, 2, 2)
	s.pass().ignored() // tells nothing
	s.is(breaker.Closed, 2, 2)
	s.good(1)
	s.is(breaker.Closed, 0, 0)
	s.bad(2)
	s.at(time.Hour)
	s.bad(1)
	s.is(breaker.Open, 0, 0)
	s.refused(time.Second)
	s.reported("1h0m0s closed to open")
}

func TestProbesAreJudgedByTheirShare(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.Probes, r.ProbeThreshold = 5, 0.5
	s := newService(t, r)
	s.open()
	s.at(5 * time.Second)
	probes := []*call{s.pass(), s.pass(), s.pass(), s.pass(), s.pass()}
	s.refused(0)
	probes[0].fail()
	probes[1].fail()
	s.is(breaker.HalfOpen, 0, 0)
	s.refused(0) // a bad probe keeps its place
	probes[2].succeed()
	probes[3].succeed()
	s.is(breaker.HalfOpen, 0, 0)
	probes[4].succeed()
	s.is(breaker.Closed, 0, 0) // 2 of 5 are less than half

	s.open()
	s.at(10 * time.Second)
	probes = []*call{s.pass(), s.pass(), s.pass(), s.pass(), s.pass()}
	probes[0].fail()
	probes[1].fail()
	probes[2].fail()
	s.is(breaker.Open, 0, 0) // whatever the others will do
	probes[3].succeed()
	s.refused(10 * time.Second) // doubled
}

func TestProbingEndsAsSoonAsItIsDecided(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.Probes, r.ProbeThreshold = 4, 0.5
	s := newService(t, r)
	s.open()
	s.at(5 * time.Second)
	s.pass() // hangs
	s.good(2)
	s.is(breaker.HalfOpen, 0, 0) // 2 of 4 may still be bad
	s.good(1)
	s.is(breaker.Closed, 0, 0)
}

func TestProbesThatTimeOutAreBadOnes(t *testing.T) {
	t.Parallel()
	r := errorRatio()
	r.Probes, r.ProbeThreshold = 4, 0.5
	s := newService(t, r)
	s.open()
	s.at(5 * time.Second)
	first := s.pass()
	s.at(6 * time.Second)
	s.pass()
	s.at(8*time.Second + 1)
	s.is(breaker.HalfOpen, 0, 0)
	first.succeed() // too late
	s.good(1)
	s.is(breaker.HalfOpen, 0, 0)
	s.at(9*time.Second + 1)
	s.refused(10*time.Second - 1) // it has opened at 9 s
	s.reported("0s closed to open", "5s open to halfOpen", "9s halfOpen to open")
}

func TestWindowOfCallsIsForgottenWhenNobodyCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, ofLast(10))
	assert.True(t, s.limiter.Idle(s.now))
	s.good(1)
	s.at(10 * time.Minute)
	assert.False(t, s.limiter.Idle(s.now))
	s.at(12 * time.Minute)
	assert.True(t, s.limiter.Idle(s.now))
}

// One call after the other, each with another outcome, while others count at the same time: the window
// has as many bad ones as were counted last.
func TestLastCallsAreExactAmongGoroutines(t *testing.T) {
	t.Parallel()
	const times, size = 3000, 1000
	r := ofLast(size)
	r.Strategy, r.Threshold = breaker.ErrorCount, size // all of them
	c := newCrowd(r)
	c.run(times, func(caller, i int) {
		l, ticket, start, decision := c.acquire()
		if decision != rule.Pass {
			t.Error("a closed breaker refuses")
			return
		}
		l.Done(ticket, rule.Exit{Now: start, Start: start, Failed: (caller+i)%2 == 0})
	})
	status := c.limiter().Status(epoch)
	require.Equal(t, breaker.Closed, status.State)
	assert.InDelta(t, size, status.Gauges[0], 0)
	// Whatever was there goes, call by call.
	good := func(n int) {
		for range n {
			_, ticket, start, _ := c.acquire()
			c.limiter().Done(ticket, rule.Exit{Now: start, Start: start})
		}
	}
	good(size)
	assert.Equal(t, []float64{size, 0}, c.limiter().Status(epoch).Gauges[:2])
	const bad = 640
	c.run(bad/callers, func(int, int) {
		l, ticket, start, _ := c.acquire()
		l.Done(ticket, rule.Exit{Now: start, Start: start, Failed: true})
	})
	assert.Equal(t, []float64{size, bad}, c.limiter().Status(epoch).Gauges[:2])
	good(size - bad)
	assert.Equal(t, []float64{size, bad}, c.limiter().Status(epoch).Gauges[:2])
	good(1)
	assert.Equal(t, []float64{size, bad - 1}, c.limiter().Status(epoch).Gauges[:2])
}

// So many failures in a row open it, at that very call, under any number of goroutines.
func TestConsecutiveFailuresAreExactAmongGoroutines(t *testing.T) {
	t.Parallel()
	for _, more := range []int{-1, 0} {
		const bad = callers * 50
		c := newCrowd(breaker.Rule{Resource: "r", Strategy: breaker.Consecutive, Threshold: bad})
		c.run(bad/callers, func(caller, i int) {
			if caller == 0 && i == 0 && more < 0 {
				return // one failure less
			}
			ticket, _ := c.limiter().Acquire(rule.Call{Now: epoch, Tokens: 1})
			c.limiter().Done(ticket, rule.Exit{Now: epoch, Start: epoch, Failed: true})
		})
		want := map[int]string{-1: breaker.Closed, 0: breaker.Open}[more]
		assert.Equal(t, want, c.limiter().Status(epoch).State)
		c.checkChanges(t)
	}
}

func TestStandaloneBreakerLooksAtTheLastCalls(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]breaker.Rule{
		"half of the last 4": {Threshold: 0.5, WindowCalls: 4},
		"2 in a row":         {Strategy: breaker.Consecutive, Threshold: 2},
	} {
		virtual := clock.NewVirtual(epoch.Time())
		b, err := breaker.New(r, breaker.Options{Clock: virtual})
		require.NoError(t, err, name)
		for _, err := range []error{nil, nil, assert.AnError} {
			require.Equal(t, err, b.Do(func() error { return err }))
			virtual.Advance(time.Hour)
		}
		require.Equal(t, breaker.Closed, b.State(), name)
		require.ErrorIs(t, b.Do(func() error { return assert.AnError }), assert.AnError)
		require.Equal(t, breaker.Open, b.State(), name)
	}
}

func TestValidateJudgesWindowsOfCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*breaker.Rule)
		fault  rule.Fault
	}{
		"a time and calls": {
			func(r *breaker.Rule) { r.Window, r.WindowCalls = time.Second, 100 },
			rule.Fault{Field: "window", Message: "is both a time, 1s, and a number of calls, 100: must be one of them"},
		},
		"too many calls": {
			func(r *breaker.Rule) { r.WindowCalls = 100_001 },
			rule.Fault{Field: "window", Message: "is {calls: 100001}: must be from 1 to 100000 calls"},
		},
		"less than none": {
			func(r *breaker.Rule) { r.WindowCalls = -1 },
			rule.Fault{Field: "window", Message: "is {calls: -1}: must be from 1 to 100000 calls"},
		},
		"more calls than it has": {
			func(r *breaker.Rule) { r.WindowCalls, r.MinCalls = 10, 11 },
			rule.Fault{Field: "minCalls", Message: "is 11: must be at most the calls of the window, 10; it would never open"},
		},
		"more failures than it has": {
			func(r *breaker.Rule) { r.WindowCalls, r.Strategy, r.Threshold = 10, breaker.ErrorCount, 11 },
			rule.Fault{Field: "threshold", Message: "is 11: must be at most the calls of the window, 10; it would never open"},
		},
		"a window without effect": {
			func(r *breaker.Rule) { r.Strategy, r.Threshold, r.WindowCalls = breaker.Consecutive, 5, 10 },
			rule.Fault{Field: "window", Message: `has no effect with strategy "consecutive", which looks at the calls since the last that was good: remove it`},
		},
		"minCalls without effect": {
			func(r *breaker.Rule) { r.Strategy, r.Threshold, r.MinCalls = breaker.Consecutive, 5, 10 },
			rule.Fault{Field: "minCalls", Message: `has no effect with strategy "consecutive": remove it`},
		},
		"a share in a row": {
			func(r *breaker.Rule) { r.Strategy = breaker.Consecutive },
			rule.Fault{Field: "threshold", Message: `is 0.5: must be a whole number of calls from 1 to 100000 with strategy "consecutive"`},
		},
		"a share of probes": {
			func(r *breaker.Rule) { r.ProbeThreshold = 2 },
			rule.Fault{Field: "probeThreshold", Message: "is 2: must be a share of the probes from 0.001 to 1"},
		},
	} {
		r := breaker.Rule{Resource: "r", Threshold: 0.5}
		test.change(&r)
		assert.Equal(t, []rule.Fault{test.fault}, breaker.Kind().Faults(r), name)
	}
}
