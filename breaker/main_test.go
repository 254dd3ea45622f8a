package breaker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

// epoch is the start of a calendar minute, at which tests begin.
const epoch = clock.Instant(1_700_000_040 * int64(time.Second))

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}

// limiter is what the engine finds in the limiter of a breaker.
type limiter interface {
	rule.Finisher
	rule.Activator
	rule.Controllable
}

// errorRatio returns a rule that opens when half of at least four calls fail.
func errorRatio() breaker.Rule {
	return breaker.Rule{
		Resource: "r", Threshold: 0.5, MinCalls: 4, OpenFor: 5 * time.Second, MaxOpenFor: 15 * time.Second,
		Probes: 2, ProbeTimeout: 3 * time.Second,
	}
}

// service is a breaker and the calls that it guards, on a time that the test moves.
type service struct {
	t       *testing.T
	rule    breaker.Rule
	limiter limiter
	version uint64
	now     clock.Instant
	changes []string // that were reported

	observer func() // is called before a change is written down
}

func newService(t *testing.T, r breaker.Rule) *service {
	s := &service{t: t, rule: r, version: 1, now: epoch, observer: func() {}}
	require.Empty(t, breaker.Kind().Faults(r))
	s.limiter = breaker.Kind().Of(breaker.Kind().WithDefaults(r)).NewLimiter(s.env()).(limiter)
	return s
}

func (s *service) env() rule.Env {
	return rule.Env{Version: s.version, Now: s.now, Changed: s.changed}
}

func (s *service) changed(at clock.Instant, from, to, _ string) {
	s.observer()
	s.changes = append(s.changes, fmt.Sprintf("%v %s to %s", at.Sub(epoch), from, to))
}

// at moves the time to so long after the epoch.
func (s *service) at(d time.Duration) { s.now = epoch.Add(d) }

// call is a call that passed.
type call struct {
	service *service
	limiter limiter
	ticket  rule.Ticket
	start   clock.Instant
}

func (s *service) request() rule.Call { return rule.Call{Now: s.now, Tokens: 1} }

// pass makes a call that has to pass.
func (s *service) pass() *call {
	s.t.Helper()
	ticket, decision := s.limiter.Acquire(s.request())
	if decision != rule.Pass {
		require.Equal(s.t, rule.Pass, decision)
	}
	return &call{service: s, limiter: s.limiter, ticket: ticket, start: s.now}
}

// refused makes calls that have to be refused, with the time after which to retry.
func (s *service) refused(retryAfter time.Duration) {
	s.t.Helper()
	for range 3 {
		_, decision := s.limiter.Acquire(s.request())
		require.Equal(s.t, rule.Block, decision)
		require.Equal(s.t, retryAfter, s.limiter.RetryAfter(s.request()))
	}
}

func (c *call) end(e rule.Exit) {
	e.Now, e.Start = c.service.now, c.start
	c.limiter.Done(c.ticket, e)
}

func (c *call) succeed()  { c.end(rule.Exit{}) }
func (c *call) fail()     { c.end(rule.Exit{Failed: true}) }
func (c *call) ignored()  { c.end(rule.Exit{Ignored: true}) }
func (c *call) giveBack() { c.limiter.GiveBack(c.service.now, c.ticket, 1) }

// good and bad make calls that take no time.
func (s *service) good(calls int) {
	s.t.Helper()
	for range calls {
		s.pass().succeed()
	}
}

func (s *service) bad(calls int) {
	s.t.Helper()
	for range calls {
		s.pass().fail()
	}
}

// slow makes a call that takes so long.
func (s *service) slow(d time.Duration) {
	s.t.Helper()
	c := s.pass()
	s.now = s.now.Add(d)
	c.succeed()
}

// adopt makes another version of the rule, which is not activated yet.
func (s *service) adopt(change func(r *breaker.Rule)) {
	change(&s.rule)
	require.Empty(s.t, breaker.Kind().Faults(s.rule))
	s.version++
	s.limiter = breaker.Kind().Of(breaker.Kind().WithDefaults(s.rule)).Adopt(s.limiter, s.env()).(limiter)
}

func (s *service) reload(change func(r *breaker.Rule)) {
	s.adopt(change)
	s.limiter.Activate(s.now)
}

func (s *service) control(state string) { s.limiter.Control(s.now, state) }

// is asserts the state and what the window of a closed breaker holds.
func (s *service) is(state string, calls, bad int) {
	s.t.Helper()
	status := s.limiter.Status(s.now)
	require.Equal(s.t, state, status.State)
	require.Len(s.t, status.Gauges, len(breaker.Kind().Gauges()))
	assert.Equal(s.t, []float64{float64(calls), float64(bad)}, status.Gauges[:2], "calls and bad calls in the window")
}

// open makes the breaker open now.
func (s *service) open() {
	s.t.Helper()
	s.bad(max(s.rule.MinCalls, 1))
	s.is(breaker.Open, 0, 0)
}

// reported asserts the changes of state since the last time.
func (s *service) reported(changes ...string) {
	s.t.Helper()
	assert.Equal(s.t, changes, s.changes)
	s.changes = nil
}
