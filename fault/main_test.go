package fault_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is when tests begin.
const epoch = clock.Instant(1_700_000_000_000_000_000)

const (
	ms     = time.Millisecond
	second = time.Second
)

// until returns the end of a rule, so long after the epoch.
func until(d time.Duration) time.Time { return epoch.Add(d).Time() }

// limiter is what a limiter of a fault rule can do.
type limiter interface {
	rule.Queue
	rule.Activator
	rule.Retirer
	rule.Controllable
}

// changes are the changes of state that a limiter has reported.
type changes []string

func (c *changes) env(version uint64) rule.Env {
	return rule.Env{
		Version: version, Now: epoch, Seed: 42,
		Changed: func(at clock.Instant, from, to, _ string) {
			*c = append(*c, at.Sub(epoch).String()+" "+from+" "+to)
		},
	}
}

// newLimiter returns a limiter of a rule that lacks no more than what this fills in, and
// the changes of state that it reports.
func newLimiter(t testing.TB, r fault.Rule) (limiter, *changes) {
	t.Helper()
	c := new(changes)
	return build(t, r, c.env(1)), c
}

func build(t testing.TB, r fault.Rule, env rule.Env) limiter {
	t.Helper()
	return ruleOf(t, r).NewLimiter(env).(limiter)
}

func ruleOf(t testing.TB, r fault.Rule) rule.Rule {
	t.Helper()
	r.Resource = "pay"
	if r.Percent == 0 {
		r.Percent = 100
	}
	if r.Until.IsZero() {
		r.Until = until(time.Hour)
	}
	complete := fault.Kind().Of(r).WithDefaults()
	require.Empty(t, complete.Faults())
	return complete
}

// adopt returns the limiter of a changed rule.
func adopt(t testing.TB, present limiter, r fault.Rule, env rule.Env) limiter {
	t.Helper()
	return ruleOf(t, r).Adopt(present, env).(limiter)
}

// call returns a call with a number, so long after the epoch.
func call(number uint64, at time.Duration) rule.Call {
	c := rule.Call{Now: epoch.Add(at), Tokens: 1}
	c.SetNumber(uint32(number))
	return c
}

// join asks for a delay of a call that Acquire has chosen.
func join(t testing.TB, l limiter, c rule.Call, wake func()) rule.Waiter {
	t.Helper()
	_, decision := l.Acquire(c)
	require.Equal(t, rule.Wait, decision)
	if wake == nil {
		wake = func() {}
	}
	w, _, decision := l.Join(c, rule.Patience{Wake: wake})
	require.Equal(t, rule.Wait, decision)
	return w
}

func decide(l limiter, c rule.Call) rule.Decision {
	_, decision := l.Acquire(c)
	return decision
}

func poll(w rule.Waiter, at time.Duration) (time.Duration, rule.Decision) {
	_, after, decision := w.Poll(epoch.Add(at))
	return after, decision
}
