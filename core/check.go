package core

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Check is a protection of the user's own. An engine asks its checks about
// every call, in the order in which they were configured, after the built-in
// rules have let it pass. Methods must be safe for concurrent use.
type Check interface {
	// Name identifies the check: it is the Rule of its refusals.
	Name() string

	// Enter decides on a call that comes at now: with [Admit], [Refuse] or
	// [Delay].
	Enter(ctx context.Context, call CallInfo, now clock.Instant) Verdict

	// Exit is told, once for every call that Enter did not refuse, what became
	// of it.
	Exit(call CallInfo, outcome Outcome)
}

// CallInfo is what a check gets to know of a call.
type CallInfo struct {
	Resource string
	Tokens   int
	Origin   string // "" when the caller did not say
	Inbound  bool

	// Args are the arguments of the call, each as a string, bool, int64, uint64
	// or float64. They are the check's to keep.
	Args []any
}

// Verdict is what a check decides.
type Verdict struct {
	refused bool
	after   time.Duration
}

// Admit lets a call through.
func Admit() Verdict { return Verdict{} }

// Refuse refuses a call and tells it when to try again; 0 if that is unknown.
func Refuse(retryAfter time.Duration) Verdict { return Verdict{refused: true, after: retryAfter} }

// Delay lets a call through after it has waited for d. The ceilings of the
// built-in rules are held against the moment at which it passes.
func Delay(d time.Duration) Verdict { return Verdict{after: d} }

// Outcome is what became of a call.
type Outcome struct {
	// Passed says that the call was made. It was not when another check or rule
	// refused it after all, or its context ended while it waited.
	Passed bool
	// Took is the response time of a call that was made.
	Took time.Duration
	// Err is the failure that the guard was told of.
	Err error
}

// checkedCall is a call with the checks that have let it through.
type checkedCall struct {
	info    CallInfo
	entered []Check
}

// exit tells them, the last first, what became of the call.
func (c *checkedCall) exit(outcome Outcome) {
	for i := len(c.entered) - 1; i >= 0; i-- {
		c.entered[i].Exit(c.info, outcome)
	}
}

// newCheckedCall copies what the checks may see of a call, so that nothing of
// the caller's escapes into them.
func newCheckedCall(resource string, r request) (*checkedCall, error) {
	args := make([]any, len(r.args))
	for i := range r.args {
		arg, ok := plainValue(reflect.ValueOf(r.args[i]))
		if !ok {
			return nil, fmt.Errorf("%w: Args: argument %d of %q is neither a string, a boolean nor a number",
				ErrInvalid, i+1, resource)
		}
		args[i] = arg
	}
	return &checkedCall{info: CallInfo{
		Resource: resource, Tokens: int(r.tokens), Origin: r.origin, Inbound: r.inbound, Args: args,
	}}, nil
}

func plainValue(v reflect.Value) (any, bool) {
	switch {
	case v.Kind() == reflect.String:
		return v.String(), true
	case v.Kind() == reflect.Bool:
		return v.Bool(), true
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return v.Uint(), true
	case v.CanFloat():
		return v.Float(), true
	}
	return nil, false
}
