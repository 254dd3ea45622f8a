package penstockconnect

import (
	"context"
	"net"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/rule"
)

const metadataPrefix = "metadata:"

// call is a call that rules may look at.
type call struct {
	Call
	ctx     context.Context    // of the connection, for its address
	clients *clientip.Resolver // nil on the client's side
	fields  http.Header        // of the answer, if the call passes
}

// attributeOf returns the attribute of a key of a call.
func attributeOf(c *call, key string) rule.Attribute {
	switch {
	case key == "method":
		return attribute.Text(c.Spec.Procedure)
	case key == rule.KeyIP && c.clients != nil:
		return rule.String(c.clients.Text(c.client()))
	case key == rule.KeyIPPrefix && c.clients != nil:
		return rule.String(c.clients.PrefixText(c.client()))
	}
	name, ok := strings.CutPrefix(key, metadataPrefix)
	if !ok {
		return rule.Attribute{}
	}
	values := c.Header[textproto.CanonicalMIMEHeaderKey(name)]
	if len(values) == 0 {
		return rule.Attribute{}
	}
	return attribute.Text(values[0])
}

// client returns the address of the client of a call.
func (c *call) client() clientip.Address {
	peer := clientip.Parse(c.Peer.Addr)
	// What a Unix socket says of its peer is a path, which may look like an address.
	if _, local := c.ctx.Value(http.LocalAddrContextKey).(*net.UnixAddr); local {
		peer = clientip.Local()
	}
	return c.clients.Client(peer, c.Header[c.clients.FieldName()])
}
