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
// context; [PriorityNormal] and false if there is none.
func PriorityFromContext(ctx context.Context) (p rule.Priority, ok bool) {
	p, ok = ctx.Value(priorityKey{}).(rule.Priority)
	return p, ok
}
