package outgoing

import (
	"context"
	"errors"

	"github.com/penstock-go/penstock/core"
)

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
