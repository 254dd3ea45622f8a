package penstockkratos

import (
	"context"
	"strings"

	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// inboundPriority returns how important a call of a server is, and its context with that if
// somebody says it.
func (g *gate) inboundPriority(ctx context.Context, c *call) (context.Context, rule.Priority) {
	if g.options.PriorityKey != "" {
		var trust func() (rule.Priority, bool)
		if g.options.PriorityTrust != nil {
			trust = func() (rule.Priority, bool) { return g.options.PriorityTrust(ctx) }
		}
		if p, ok := g.clients.Priority(c.values(g.options.PriorityKey), trust, c.client); ok {
			return core.ContextWithPriority(ctx, p), p
		}
	}
	if g.options.Priority != nil {
		p := g.options.Priority(ctx, c.operation)
		return core.ContextWithPriority(ctx, p), p
	}
	return ctx, rule.PriorityNormal
}

// outboundPriority returns the priority of the context of a call that a client makes, and
// writes it into the header or the metadata of the request. Without a priority it removes what
// is there.
func (g *gate) outboundPriority(ctx context.Context, c *call) (context.Context, rule.Priority) {
	p, known := core.PriorityFromContext(ctx)
	key := g.options.PriorityKey
	if key == "" || c.transport == nil {
		return ctx, p
	}
	ctx = withoutMetadata(ctx, strings.ToLower(key))
	switch t, ok := c.transport.(khttp.Transporter); {
	case known:
		c.transport.RequestHeader().Set(key, p.String())
	case ok:
		t.Request().Header.Del(key)
	case len(c.values(key)) > 0:
		c.transport.RequestHeader().Set(key, "") // which is no priority: kratos cannot delete it
	}
	return ctx, p
}

// withoutMetadata returns the context without a key of the outgoing metadata.
func withoutMetadata(ctx context.Context, key string) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if _, there := md[key]; !ok || !there {
		return ctx
	}
	delete(md, key)
	return metadata.NewOutgoingContext(ctx, md)
}
