package outgoing

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Canceled reports whether ctx was cancelled before its deadline, if it has one: the
// caller no longer waits for the answer. At the deadline and later it returns false,
// even if ctx was cancelled before: a call that is still under way then took too long.
func Canceled(ctx context.Context) bool {
	if !errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > 0
}

// IsInconclusive reports whether the end of a call with err tells nothing of what was
// called: its caller had cancelled it, or a guard further down refused it.
func IsInconclusive(err error) bool {
	return err != nil && (errors.Is(err, context.Canceled) || core.IsRefusal(err))
}

// MarkOutcome marks how a call ended that ended with err: as failed if failed is true, else
// as one that does not count, see [core.Guard.MarkIgnored], if err [IsInconclusive].
func MarkOutcome(guard *core.Guard, failed bool, err error) {
	switch {
	case failed:
		guard.MarkFailed()
	case IsInconclusive(err):
		guard.MarkIgnored()
	}
}
