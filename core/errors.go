package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/rules"
)

var (
	// ErrBlocked matches, with errors.Is, every [BlockError].
	ErrBlocked = errors.New("penstock: blocked")

	// ErrClosed is returned by everything that is asked of a closed engine, and
	// to callers that were waiting when it was closed.
	ErrClosed = errors.New("penstock: engine is closed")

	// ErrInvalid matches, with errors.Is, the refusal of a call whose options
	// make no sense. It is a mistake of the program.
	ErrInvalid = errors.New("penstock: invalid call")
)

// BlockError says that a call was refused, by what, and when it is worth trying
// again. One that Entry returned is shared: do not write to it.
type BlockError struct {
	// Resource is the name of the resource that was called.
	Resource string

	// Kind is the kind of the rule that refused: [rules.KindFlow], or
	// [KindCheck] for a [Check] of the user's own.
	Kind rules.Kind

	// Rule is the name of the rule, or of the check.
	Rule string

	// RetryAfter is how long it takes until such a call can pass if nobody else
	// comes, rounded up; 0 when it cannot be told, or when the call can never
	// pass under the present rule.
	RetryAfter time.Duration
}

// KindCheck is the kind of a refusal by a [Check].
const KindCheck rules.Kind = "check"

func (e *BlockError) Error() string {
	if e.RetryAfter == 0 {
		return fmt.Sprintf("penstock: %q blocked by %s %q", e.Resource, e.Kind, e.Rule)
	}
	return fmt.Sprintf("penstock: %q blocked by %s %q, retry after %v", e.Resource, e.Kind, e.Rule, e.RetryAfter)
}

// Is makes every BlockError match [ErrBlocked].
func (e *BlockError) Is(target error) bool { return target == ErrBlocked }
