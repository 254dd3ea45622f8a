package rule

import (
	"errors"
	"fmt"
)

// ErrRefused matches, with errors.Is, every [RefusedError].
var ErrRefused = errors.New("penstock: refused")

// RefusedError says that a limiter that is used without an engine refuses a call, such as
// flow.Limiter. It is shared by all calls of the limiter: do not write to it.
type RefusedError struct {
	Kind   Kind
	Rule   string // its name
	Reason Reason // why rules of that kind refuse
}

// Error says what refused.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("penstock: refused by %s (%s)", Key{e.Kind, e.Rule}, e.Reason)
}

// Is makes every RefusedError match [ErrRefused].
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }
