package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/core/internal/sleep"
	"github.com/penstock-go/penstock/rule"
)

var (
	// ErrBlocked matches, with errors.Is, every [BlockError].
	ErrBlocked = errors.New("penstock: blocked")

	// ErrClosed is returned by everything that is asked of a closed engine, and
	// to callers that were waiting when it was closed.
	ErrClosed = sleep.ErrClosed

	// ErrInvalid matches, with errors.Is, the refusal of a call whose options
	// make no sense. It is a mistake of the program.
	ErrInvalid = call.ErrInvalid

	// ErrUnknown matches, with errors.Is, the errors which say that no rule of that kind and name is in force,
	// that there is no such kind of rules, or that the resource was not called of late and no rule guards it.
	ErrUnknown = errors.New("core: there is no such rule, kind of rules or resource")
)

// BlockError says that a call was refused, by what, and when it is worth trying
// again. One that Entry returned is shared: do not write to it.
type BlockError struct {
	// Resource is the name of the resource that was called.
	Resource string

	// Kind is the kind of the rule that refused, such as [rules.KindFlow].
	Kind rule.Kind

	// Rule is the name of the rule.
	Rule string

	// Reason says why rules of that kind refuse: what an adapter answers by.
	Reason rule.Reason

	// Answer is what the rule wants adapters to answer; the zero Answer leaves that to
	// the Reason.
	Answer rule.Answer

	// RetryAfter is how long it takes until such a call can pass all of its
	// rules if no other call comes, rounded up: the longest of the waits for those
	// that would refuse it now, whichever of them is named in Rule. It is 0 when
	// that is unknown, and [rule.Never] when such a call cannot pass under the
	// present rules.
	RetryAfter time.Duration

	// Demoted says that another rule had given the call the lowest priority before, see
	// [Guard.Demoted].
	Demoted bool
}

func (e *BlockError) Error() string {
	text := fmt.Sprintf("penstock: %q blocked by %s %q", e.Resource, e.Kind, e.Rule)
	switch e.RetryAfter {
	case 0:
		return text
	case rule.Never:
		return text + ", cannot pass under the present rules"
	}
	return fmt.Sprintf("%s, retry after %v", text, e.RetryAfter)
}

// retryText returns RetryAfter for people to read.
func (e *BlockError) retryText() string {
	switch e.RetryAfter {
	case 0:
		return "unknown"
	case rule.Never:
		return "never"
	}
	return e.RetryAfter.String()
}

// Is makes every BlockError match [ErrBlocked].
func (e *BlockError) Is(target error) bool { return target == ErrBlocked }

// HeldBackError says that what a source holds is not put in force because it would
// remove more rules than [Config.MaxRemoval] allows. What was in force stays until the
// source holds most of them again or [Engine.Confirm] is called.
type HeldBackError struct {
	Source  string
	Removed int // rules that would go, and those that went within Within
	Rules   int // rules of the source that are in force, and those that went within Within
	Most    float64
	Within  time.Duration // Config.RemovalWindow if rules that went before are counted; else 0
}

// Error tells how many rules would go.
func (e *HeldBackError) Error() string { return (*ruleset.HeldBack)(e).Error() }

// isFailure is what [Config.IsFailure] defaults to.
func isFailure(err error) bool { return !errors.Is(err, context.Canceled) && !IsRefusal(err) }

// IsRefusal says whether an error is, or wraps, the refusal of a call that tells nothing
// of what was called: every [BlockError], but for one with the reason [rule.Injected], which
// stands for a failure of what was called.
func IsRefusal(err error) bool {
	if !errors.Is(err, ErrBlocked) {
		return false
	}
	var block *BlockError
	return !errors.As(err, &block) || block.Reason != rule.Injected
}

// publicError returns an error of package ruleset as the engine reports it.
func publicError(err error) error {
	if heldBack := (*ruleset.HeldBack)(nil); errors.As(err, &heldBack) {
		return (*HeldBackError)(heldBack)
	}
	return err
}

// unknownError matches ErrUnknown.
type unknownError struct{ text string }

func (e *unknownError) Error() string { return e.text }

func (e *unknownError) Is(target error) bool { return target == ErrUnknown }

func unknownKind(kind rule.Kind) error {
	return &unknownError{"core: there is no such kind of rules: " + rule.Quote(lines.Cut(string(kind)))}
}

func unknownRule(key rule.Key) error {
	return &unknownError{"core: no such rule is in force: " + lines.Cut(string(key.Kind)) + " " + rule.Quote(lines.Cut(key.Name))}
}
