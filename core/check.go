package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Refuse refuses a call and tells it when to try again; 0 if that is unknown,
// [Never] if there is no use in it.
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
	failure error   // that the guard was told of
	besides besides // of its guard
}

// exit tells them, the last first, what became of the call.
func (c *checkedCall) exit(outcome Outcome) {
	for _, check := range slices.Backward(c.entered) {
		check.Exit(c.info, outcome)
	}
}

// newCheckedCall copies what the checks may see of a call. Copies are made of
// strings too: if anything of the options were kept, those of every call would
// escape to the heap, checks or no checks.
func newCheckedCall(resource string, opts []Option) (*checkedCall, error) {
	call := &checkedCall{info: CallInfo{Resource: resource, Tokens: 1}}
	for i := range opts {
		switch o := &opts[i]; o.kind {
		case optionTokens:
			call.info.Tokens = o.tokens
		case optionOrigin:
			call.info.Origin = strings.Clone(o.origin)
		case optionInbound:
			call.info.Inbound = true
		case optionArgs:
			call.info.Args = make([]any, len(o.args))
			for j := range o.args {
				arg, ok := plainValue(o.args[j])
				if !ok {
					return nil, fmt.Errorf("%w: Args: argument %d is neither a string, a boolean nor a number: convert it",
						ErrInvalid, j+1)
				}
				call.info.Args[j] = arg
			}
		}
	}
	return call, nil
}

// plainValue copies an argument, without reflection for the same reason.
func plainValue(arg any) (any, bool) {
	switch v := arg.(type) {
	case string:
		return strings.Clone(v), true
	case bool:
		return v, true
	case int:
		return int64(v), true
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint:
		return uint64(v), true
	case uint8:
		return uint64(v), true
	case uint16:
		return uint64(v), true
	case uint32:
		return uint64(v), true
	case uint64:
		return v, true
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	return nil, false
}
