package penstockkratos

import (
	"context"
	"net"
	"net/http"
	"strings"

	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"google.golang.org/grpc/peer"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/rule"
)

const metadataPrefix = "metadata:"

// call is a call that rules may look at.
type call struct {
	ctx       context.Context
	transport transport.Transporter // nil if unknown
	operation string
	clients   *clientip.Resolver // nil on the client's side
}

// newCall returns the call with a context.
func (g *gate) newCall(ctx context.Context) call {
	c := call{ctx: ctx, clients: g.clients}
	var known bool
	if g.Inbound {
		c.transport, known = transport.FromServerContext(ctx)
	} else {
		c.transport, known = transport.FromClientContext(ctx)
	}
	if known {
		c.operation = c.transport.Operation()
	}
	return c
}

// values returns the values of a header field or of metadata.
func (c *call) values(name string) []string {
	if c.transport == nil {
		return nil
	}
	return c.transport.RequestHeader().Values(name)
}

// attributeOf returns the attribute of a key of the call with a context.
func (g *gate) attributeOf(ctx context.Context, key string) rule.Attribute {
	c := g.newCall(ctx)
	switch {
	case key == "method":
		return attribute.Text(c.operation)
	case key == rule.KeyIP && c.clients != nil:
		return rule.String(c.clients.Text(c.client()))
	case key == rule.KeyIPPrefix && c.clients != nil:
		return rule.String(c.clients.PrefixText(c.client()))
	}
	name, ok := strings.CutPrefix(key, metadataPrefix)
	if !ok {
		return rule.Attribute{}
	}
	values := c.values(name)
	if len(values) == 0 {
		return rule.Attribute{}
	}
	return attribute.Text(values[0])
}

// client returns the address of the client of a call.
func (c *call) client() clientip.Address {
	address := c.peer()
	if !c.clients.Trusts(address) {
		return address
	}
	return c.clients.Client(address, c.values(c.clients.FieldName()))
}

// peer returns the address of the other end of the connection. What a Unix socket says of its
// peer is a path, which may look like an address.
func (c *call) peer() clientip.Address {
	if t, ok := c.transport.(khttp.Transporter); ok {
		if _, local := c.ctx.Value(http.LocalAddrContextKey).(*net.UnixAddr); local {
			return clientip.Local()
		}
		return clientip.Parse(t.Request().RemoteAddr)
	}
	p, ok := peer.FromContext(c.ctx)
	if !ok {
		return clientip.Address{}
	}
	return clientip.Of(p.Addr)
}
