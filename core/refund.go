package core

import (
	"context"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/internal/optional"
)

// Refund gives back tokens that calls of the resource with these options took, as [Tokens] says
// how many, for who learns that they cost less and has no guard of them, as a service that decides
// for others; [Guard.Settle] is the way for who has. Each rule gives back the tokens that have
// counted the longest, and no more than it counts now: whatever is given back, nobody gets more
// than the limit. A throttle and a prepaid balance give nothing back, and rules that do not count tokens have nothing to
// give. Of rules with scope fleet those of the modes share and ask give tokens back, the latter a moment
// later and not in an outage; leases do not. Statistics and recordings do not change.
//
// The error is [ErrInvalid] or [ErrClosed].
func (e *Engine) Refund(resource string, opts ...Option) error {
	var q call.Request
	if err := q.Read(context.Background(), resource, 0, opts); err != nil {
		return err
	}
	if e.peek(resource).planNow() == nil {
		return ErrClosed
	}
	now := e.clock.Now()
	for _, p := range e.applying(resource, opts) {
		refunder, ok := p.Limiter.(optional.Refunder)
		if !ok {
			continue
		}
		call, _ := askedOf(context.Background(), &p, now, opts)
		call.Now, call.Tokens = now, q.Tokens // of rules without attributes, too
		refunder.Refund(call)
	}
	return nil
}
