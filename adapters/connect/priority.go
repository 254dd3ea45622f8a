package penstockconnect

import (
	"context"
	"net/http"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// inboundPriority returns how important a call of a server is, and its context with that if
// somebody says it.
func (g *gate) inboundPriority(ctx context.Context, c *call) (context.Context, rule.Priority) {
	if g.priorityField != "" {
		var trust func() (rule.Priority, bool)
		if g.options.PriorityTrust != nil {
			trust = func() (rule.Priority, bool) { return g.options.PriorityTrust(ctx, &c.Call) }
		}
		if p, ok := g.clients.Priority(c.Header[g.priorityField], trust, c.client); ok {
			return core.ContextWithPriority(ctx, p), p
		}
	}
	if g.options.Priority != nil {
		p := g.options.Priority(ctx, &c.Call)
		return core.ContextWithPriority(ctx, p), p
	}
	return ctx, rule.PriorityNormal
}

// outboundPriority returns the priority of the context of a call that a client makes, and
// writes it into the header of the request; without a priority, the header has none.
func (g *gate) outboundPriority(ctx context.Context, header http.Header) rule.Priority {
	p, known := core.PriorityFromContext(ctx)
	switch {
	case g.priorityField == "":
	case known:
		header[g.priorityField] = []string{p.String()}
	default:
		delete(header, g.priorityField)
	}
	return p
}
