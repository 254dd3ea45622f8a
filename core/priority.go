package core

import (
	"context"

	"github.com/penstock-go/penstock/rule"
)

type priorityKey struct{}

// ContextWithPriority returns a context for everything that is done for a call of that
// priority. Adapters for servers put it into the contexts of handlers, and those for clients
// give the calls that are made with it the same priority. [Engine.Entry] does not look at
// it: to guard a call with the priority of its context, pass [Priority] with that of
// [PriorityFromContext].
func ContextWithPriority(ctx context.Context, p rule.Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityFromContext returns the priority that [ContextWithPriority] has put into a
// context; [rule.PriorityNormal] and false if there is none. Within a call that a rule has demoted, see
// [Guard.Demoted], it is the lowest: so what is called for it, by adapters too, is the first to be shed.
func PriorityFromContext(ctx context.Context) (p rule.Priority, ok bool) {
	if isDemoted(ctx) {
		return rule.PrioritySheddable, true
	}
	p, ok = ctx.Value(priorityKey{}).(rule.Priority)
	return p, ok
}

// isDemoted says whether a rule has demoted one of the calls within which ctx was made.
func isDemoted(ctx context.Context) (demoted bool) {
	for c := callOf(ctx); c != nil && !demoted; c = callOf(ctx) {
		demoted, ctx = c.guard.Demoted(), c.Context
		c.mu.Unlock()
	}
	return demoted
}
