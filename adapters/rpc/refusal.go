package rpc

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// RefusalIn returns the refusal that an error is or wraps, nil if there is none.
func RefusalIn(err error) *core.BlockError {
	var block *core.BlockError
	errors.As(err, &block)
	return block
}

// RetryAfter returns after what time a call like the refused one can pass; known is false if
// nobody can tell, if it never can, or if the caller may not call at all.
func RetryAfter(block *core.BlockError) (after time.Duration, known bool) {
	return block.RetryAfter, block.RetryAfter > 0 && block.RetryAfter != rule.Never && block.Reason != rule.Denied
}

// HiddenMessage returns the message of a refused call for callers who are not to learn the
// names of rules and resources.
func HiddenMessage(block *core.BlockError) string {
	const message = "penstock: the call was refused"
	if after, known := RetryAfter(block); known {
		return fmt.Sprintf("%s, retry after %v", message, after)
	}
	return message
}

// QuotaText returns the description of the quota that a refused call has exceeded.
func QuotaText(block *core.BlockError) string {
	return fmt.Sprintf("refused by the %s rule %q", block.Kind, block.Rule)
}
