package core

import (
	"context"
	"errors"
	"time"
)

// Decision is what was decided on a call, with the limits that it is held against: what a gateway answers
// with.
type Decision struct {
	// Refusal is why the call must not be made; nil if it has passed.
	Refusal *BlockError

	// RetryAfter is that of the Refusal.
	RetryAfter time.Duration

	// Limits are those of [Engine.Quotas], as they are once the call has taken its tokens.
	Limits []RuleSnapshot

	// Revision is that of the rules by which it was decided, or of earlier ones, see [Engine.Revision].
	Revision uint64
}

// Limit returns the limit that the call is nearest to: that of the rule which has refused it, else the one
// of which the least remains. It is nil if there is none. Its Quota has the limit, what remains, and when
// there will be more. Of limits of which nobody knows what remains it returns only that which has refused.
func (d *Decision) Limit() (nearest *RuleSnapshot) {
	for i := range d.Limits {
		switch of := &d.Limits[i]; {
		case d.Refusal != nil && of.Kind == d.Refusal.Kind && of.Name == d.Refusal.Rule:
			return of
		case d.Refusal == nil && !of.Quota.Unknown && (nearest == nil || of.Quota.Remaining < nearest.Quota.Remaining):
			nearest = of
		}
	}
	return nearest
}

// Decide is [Engine.Entry] for those who tell their callers of the limits that they are under: it asks the
// rules once, and reads the limits of those that it has asked. The guard is to be exited if the call has
// passed. The error is one of Entry other than a refusal.
func (e *Engine) Decide(ctx context.Context, resource string, opts ...Option) (guard Guard, d Decision, err error) {
	d.Revision = e.Revision()
	r := e.get(resource)
	if guard, err = e.enter(ctx, r, resource, opts); err != nil {
		if !errors.As(err, &d.Refusal) {
			return
		}
		d.RetryAfter, err = d.Refusal.RetryAfter, nil
	}
	told := false
	defer func() {
		if !told { // a rule has panicked: nobody gets to know that the call has passed
			guard.Cancel()
		}
	}()
	if p := r.lookUpAgain(resource).planNow(); p != nil {
		d.Limits = quotasOf(ctx, p, e.clock.Now(), opts)
	}
	told = true
	return
}
