package outgoing

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

var (
	// ErrThrottled matches, with [errors.Is], the refusal of a call because its target
	// has rejected too large a share of the calls of late.
	ErrThrottled = errors.New("outgoing: throttled")

	// ErrPaused matches the refusal of a call because the target has said that it does
	// not want calls yet.
	ErrPaused = errors.New("outgoing: paused by the target")

	// ErrRetryBudget matches the refusal of a retry because the retries have reached
	// their share of the calls.
	ErrRetryBudget = errors.New("outgoing: retry budget exhausted")

	// ErrNotRetryable matches the refusal of a retry because the target has said that
	// the call is not to be retried.
	ErrNotRetryable = errors.New("outgoing: the target forbids retries")
)

// kind is the [core.BlockError.Kind] of refusals of this package.
const kind = "outgoing"

// Error is the refusal of a call that was not sent. [errors.Is] tells by its cause why,
// and finds [core.ErrBlocked]; [errors.As] finds a [core.BlockError]. It is shared: do not
// write to it.
type Error struct {
	// Cause is ErrThrottled, ErrPaused, ErrRetryBudget or ErrNotRetryable.
	Cause error

	// Target is what was called.
	Target string

	// RetryAfter is how long the target wants no calls, rounded up; 0 if that is not
	// known.
	RetryAfter time.Duration

	block core.BlockError
}

func newError(cause error, name, target string, retryAfter time.Duration) *Error {
	return &Error{
		Cause: cause, Target: target, RetryAfter: retryAfter,
		block: core.BlockError{
			Resource: target, Kind: kind, Rule: name, Reason: rule.Overloaded, RetryAfter: retryAfter,
		},
	}
}

// Error tells the cause and the target.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v: the call of %q was not sent", e.Cause, e.Target)
	if e.RetryAfter > 0 {
		text = fmt.Sprintf("%s, retry after %v", text, e.RetryAfter)
	}
	return text
}

// Is makes the error match its cause.
func (e *Error) Is(target error) bool { return target == e.Cause }

// Unwrap returns the refusal as a [core.BlockError].
func (e *Error) Unwrap() error { return &e.block }

// roundUp rounds a wait up to two digits, so that there are few different ones and errors
// can be shared.
func roundUp(d time.Duration) time.Duration {
	const digits = 100
	step := time.Duration(1)
	for d/step >= digits {
		step *= 10
	}
	return (d + step - 1) / step * step
}
