package outgoing

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Result says what a target did with a call.
type Result uint8

const (
	// Ignored tells nothing about the target: the caller has cancelled the call, or it
	// was refused on this side.
	Ignored Result = iota

	// Accepted says that the target has served the call, well or not.
	Accepted

	// Rejected says that the target has turned the call away because it is overloaded,
	// or could not be reached.
	Rejected
)

// Answer is what a target said to a call.
type Answer struct {
	Result Result

	// RetryAfter is how long the target wants no calls of that priority, nor of lower
	// ones; 0 if it did not say. [ThrottleOptions.MaxPause] bounds it.
	RetryAfter time.Duration

	// NoRetry says that the target does not want the call to be retried. Retries are
	// refused if the context of the call is that of [WithRetries].
	NoRetry bool
}

// attempts counts the attempts of one call. The context has it.
type attempts struct {
	begun   atomic.Int64 // with those that the budget refused
	noRetry atomic.Bool
}

type attemptsKey struct{}

// WithRetries returns a context for all attempts of one call: the first that is sent is
// the call, and those after it are retries, for which the [RetryBudgets] are asked. A loop
// that retries makes it once before the loop, whatever makes the attempts. It must not be
// used for different calls.
func WithRetries(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptsKey{}, new(attempts))
}

// AsRetry returns a context whose calls are retries, all of them. It is for loops that
// know the number of the attempt but not its context.
func AsRetry(ctx context.Context) context.Context {
	a := new(attempts)
	a.begun.Store(1)
	return context.WithValue(ctx, attemptsKey{}, a)
}

// Call is a call that is to be sent. The zero Call is one that nothing limits.
type Call struct {
	throttle *Throttle
	target   *target
	attempts *attempts
	priority rule.Priority
}

// Begin decides on a call of a target before it is sent. Either of throttle and budgets
// may be nil. The error is an [*Error] if the call is not to be sent, else nil: then End
// must be called.
func Begin(ctx context.Context, throttle *Throttle, budgets *RetryBudgets, target string, p rule.Priority) (Call, error) {
	c := Call{throttle: throttle, priority: p}
	if throttle != nil {
		var refused *Error
		if c.target, refused = throttle.allow(target, p); refused != nil {
			return Call{}, refused
		}
	}
	if budgets != nil {
		c.attempts, _ = ctx.Value(attemptsKey{}).(*attempts)
		if refused := c.attempts.begin(budgets.of(target)); refused != nil {
			return Call{}, refused
		}
	}
	return c, nil
}

// begin counts an attempt, and takes a retry from the budget if it is not the first.
func (a *attempts) begin(budget *retryBudget) *Error {
	switch {
	case a == nil:
		budget.call()
	case a.noRetry.Load():
		budget.refused.Add(1)
		return budget.notAllowed
	case a.begun.Add(1) == 1:
		budget.call()
	case !budget.allow():
		return budget.exhausted
	}
	return nil
}

// End says how the call ended. Call it once.
func (c Call) End(a Answer) {
	if c.target != nil {
		c.throttle.end(c.target, c.priority, a)
	}
	if a.NoRetry && c.attempts != nil {
		c.attempts.noRetry.Store(true)
	}
}
