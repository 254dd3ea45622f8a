package adaptertest

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Failing is a rule on all calls that lets them pass, and then runs Fail wherever an adapter asks it
// something about a call that has passed: what an adapter holds then has to be given back.
type Failing struct{ Fail func() }

// NewEngine returns an engine whose only rule it is, which is closed after the test.
func (f Failing) NewEngine(tb testing.TB) *core.Engine {
	tb.Helper()
	return probeEngine(tb, core.Config{}, rule.RateLimited, "user", "", f)
}

// Acquire implements [rule.Limiter].
func (Failing) Acquire(rule.Call) (rule.Ticket, rule.Decision) { return 0, rule.Pass }

// GiveBack implements [rule.Limiter].
func (Failing) GiveBack(clock.Instant, rule.Ticket, int32) {}

// RetryAfter implements [rule.Limiter].
func (Failing) RetryAfter(rule.Call) time.Duration { return 0 }

// Status implements [rule.Limiter].
func (Failing) Status(clock.Instant) rule.Status { return rule.Status{} }

// Idle implements [rule.Limiter].
func (Failing) Idle(clock.Instant) bool { return true }

// Done implements [rule.Finisher].
func (Failing) Done(rule.Ticket, rule.Exit) {}

// MarkLongLived is called when a call turns out to be long-lived.
func (f Failing) MarkLongLived(rule.Ticket) { f.Fail() }

// QuotaOf implements [rule.QuotaReader].
func (f Failing) QuotaOf(rule.Call) *rule.Quota {
	f.Fail()
	return nil
}

// Load has calls learn the load of the service.
func (f Failing) Load(clock.Instant) rule.Load {
	f.Fail()
	return rule.Load{}
}

// RequireFailsAndHoldsNothing makes a call for each way in which a rule can fail, and checks that nothing of
// it is under way then. It is called with the engine of the rule, and returns when the call has ended, or
// lets the failure pass on.
func RequireFailsAndHoldsNothing(t *testing.T, call func(t *testing.T, engine *core.Engine)) {
	t.Helper()
	for way, fail := range failures() {
		t.Run(way, func(t *testing.T) {
			failed := false
			rule := Failing{Fail: func() {
				if !failed {
					failed = true
					fail()
				}
			}}
			engine := rule.NewEngine(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				call(t, engine)
			}()
			<-done
			require.True(t, failed, "the rule was not asked")
			for _, of := range engine.Snapshot().Resources {
				assert.Zero(t, of.InFlight, of.Name)
			}
		})
	}
}

// failures are the ways in which code does not return.
func failures() map[string]func() {
	return map[string]func(){"panic": func() { panic("failing") }, "Goexit": runtime.Goexit}
}
