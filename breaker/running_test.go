package breaker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// slowRatio returns a rule that opens when half of at least 20 calls are slow.
func slowRatio() breaker.Rule {
	return breaker.Rule{
		Resource: "r", Strategy: breaker.SlowRatio, Threshold: 0.5, SlowAfter: 300 * ms, OpenFor: 5 * time.Second, Probes: 2,
	}
}

func TestHangingCallsOpenTheBreakerBeforeTheyEnd(t *testing.T) {
	t.Parallel()
	s := newService(t, slowRatio())
	hanging := make([]*call, 0, 20)
	for i := range 20 {
		s.at(time.Duration(i) * ms)
		hanging = append(hanging, s.pass())
	}
	s.at(319 * ms)
	other := s.pass() // 19 are slow
	s.is(breaker.Closed, 19, 19)
	s.at(319*ms + 1)
	s.refused(5 * time.Second)
	s.at(5 * time.Second)
	for _, c := range append(hanging, other) {
		c.fail() // the client gives up: that counts no more
	}
	s.refused(319*ms + 1)
	s.reported("319.000001ms closed to open")
}

func TestSlowCallsCountAtTheInstantAtWhichTheyBecomeSlow(t *testing.T) {
	t.Parallel()
	s := newService(t, slowRatio())
	for i := range 20 {
		s.at(time.Duration(i) * ms)
		s.pass()
	}
	s.at(4 * time.Second) // nobody has called or looked since
	s.refused(time.Second + 319*ms + 1)
	s.reported("319.000001ms closed to open")
}

func TestRunningCallCountsOnce(t *testing.T) {
	t.Parallel()
	r := slowRatio()
	r.MinCalls = 3
	s := newService(t, r)
	slow, cancelled, fast := s.pass(), s.pass(), s.pass()
	s.at(300 * ms)
	fast.succeed() // exactly so long is not slow
	s.at(301 * ms)
	s.is(breaker.Open, 0, 0)
	s.control(breaker.Closed)
	s.control("")
	slow.succeed()
	cancelled.ignored()
	s.is(breaker.Closed, 0, 0)

	r.MinCalls = 100
	s = newService(t, r)
	slow, cancelled = s.pass(), s.pass()
	s.at(400 * ms)
	s.is(breaker.Closed, 2, 2)
	slow.succeed()
	cancelled.ignored()
	s.is(breaker.Closed, 2, 2)
}

func TestCallThatIsGivenBackIsNotSlow(t *testing.T) {
	t.Parallel()
	s := newService(t, slowRatio())
	c := s.pass()
	c.giveBack()
	s.at(time.Second)
	s.is(breaker.Closed, 0, 0)
}

func TestLongLivedCallsAreNotSlowWhileTheyRun(t *testing.T) {
	t.Parallel()
	s := newService(t, slowRatio())
	request := s.request()
	request.SetLongLived()
	watch, decision := s.limiter.Acquire(request)
	require.Equal(t, rule.Pass, decision)
	stream := s.pass()
	s.limiter.(optional.Watcher).MarkLongLived(stream.ticket)
	s.at(time.Hour)
	s.is(breaker.Closed, 0, 0)
	stream.end(rule.Exit{LongLived: true})
	s.limiter.Done(watch, rule.Exit{Now: s.now, Start: epoch, LongLived: true})
	s.is(breaker.Closed, 0, 0)
}

func TestSlowProbeOpensTheBreakerBeforeItEnds(t *testing.T) {
	t.Parallel()
	r := slowRatio()
	r.MinCalls = 1
	s := newService(t, r)
	s.slow(301 * ms)
	s.at(6 * time.Second)
	probe, stream := s.pass(), s.pass()
	s.limiter.(optional.Watcher).MarkLongLived(stream.ticket)
	s.at(6*time.Second + 300*ms)
	s.is(breaker.HalfOpen, 0, 0)
	s.at(6*time.Second + 300*ms + 1)
	s.refused(5 * time.Second)
	probe.succeed()
	s.refused(5 * time.Second)
	s.reported("300.000001ms closed to open", "6s open to halfOpen", "6.300000001s halfOpen to open")
}

func TestShorterSlowAfterLooksAtCallsUnderWay(t *testing.T) {
	t.Parallel()
	s := newService(t, slowRatio())
	s.pass()
	s.at(200 * ms)
	s.reload(func(r *breaker.Rule) { r.SlowAfter = 100 * ms })
	s.at(200*ms + 1)
	s.is(breaker.Closed, 1, 1)
}

// There are more calls under way than the breaker looks at: the others count when they end.
func TestCallsBeyondTheBoundCountWhenTheyEnd(t *testing.T) {
	t.Parallel()
	r := slowRatio()
	r.MinCalls = 1_000_000
	s := newService(t, r)
	const calls = 5000
	all := make([]*call, calls)
	for i := range all {
		all[i] = s.pass()
	}
	s.at(400 * ms)
	s.is(breaker.Closed, 4096, 4096)
	for _, c := range all {
		c.succeed()
	}
	s.is(breaker.Closed, calls, calls)
}

// Of so many calls, which end while others look, each counts once, and no slot is lost.
func TestRunningCallsCountOnceAmongGoroutines(t *testing.T) {
	t.Parallel()
	const times = 500
	r := slowRatio()
	r.MinCalls, r.Window = callers*times*2, 24*time.Hour
	c := newCrowd(r)
	var moves sync.RWMutex // while time moves, no call may be between Acquire and GiveBack: it would count if it became slow
	c.run(times, func(caller, i int) {
		l, ticket, start, decision := c.acquire()
		if decision != rule.Pass {
			t.Error("a closed breaker refuses")
			return
		}
		switch {
		case caller == 0:
			moves.Lock()
			c.now.Add(int64(100 * ms))
			moves.Unlock()
		case caller == 1:
			l.Status(c.time())
		case i%7 == 0:
			moves.RLock()
			other, given, _, _ := c.acquire()
			other.GiveBack(c.time(), given, 1)
			moves.RUnlock()
		}
		l.Done(ticket, rule.Exit{Now: c.time(), Start: start})
	})
	c.now.Add(int64(time.Second)) // a slot that was lost would count as slow now
	gauges := c.limiter().Status(c.time()).Gauges
	assert.InDelta(t, callers*times, gauges[0], 0)
	c.checkChanges(t)
}

func TestStandaloneBreakerSeesHangingCalls(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(epoch.Time())
	b, err := breaker.New(breaker.Rule{Strategy: breaker.SlowRatio, Threshold: 1, SlowAfter: time.Second, MinCalls: 3}, breaker.Options{Clock: virtual})
	require.NoError(t, err)
	for range 3 {
		_, err := b.Allow()
		require.NoError(t, err)
	}
	virtual.Advance(time.Second)
	require.NoError(t, func() error { _, err := b.Allow(); return err }())
	virtual.Advance(1)
	_, err = b.Allow()
	require.ErrorIs(t, err, rule.ErrRefused)
	require.Equal(t, breaker.Open, b.State())
}

func TestCallsUnderASlowRatioAllocateNothing(t *testing.T) {
	s := newService(t, slowRatio())
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		ticket, _ := s.limiter.Acquire(s.request())
		s.limiter.Done(ticket, rule.Exit{Now: s.now, Start: s.now})
		s.now = s.now.Add(ms)
	}))
}
