package penstockgrpc

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/rule"
)

// serverAttributes reads the attributes of calls that a server receives.
type serverAttributes struct {
	clients   *clientip.Resolver
	forwarded string // the metadata that names the clients of proxies
}

func newServerAttributes(options clientip.Options) *serverAttributes {
	clients := clientip.New(options)
	return &serverAttributes{clients, strings.ToLower(clients.FieldName())}
}

// of returns the attribute of a key of the call with a context.
func (a *serverAttributes) of(ctx context.Context, key string) rule.Attribute {
	switch key {
	case rule.KeyIP:
		return rule.String(a.clients.Text(a.client(ctx)))
	case rule.KeyIPPrefix:
		return rule.String(a.clients.PrefixText(a.client(ctx)))
	}
	if name, ok := strings.CutPrefix(key, metadataPrefix); ok {
		return firstOf(metadata.ValueFromIncomingContext(ctx, name))
	}
	return rule.Attribute{}
}

// client returns the address of the client of a call.
func (a *serverAttributes) client(ctx context.Context) clientip.Address {
	var address clientip.Address
	if p, ok := peer.FromContext(ctx); ok {
		address = addressOf(p)
	}
	if !a.clients.Trusts(address) {
		return address // without copying metadata
	}
	return a.clients.Client(address, metadata.ValueFromIncomingContext(ctx, a.forwarded))
}

func addressOf(p *peer.Peer) clientip.Address {
	// What a Unix socket says of its peer is a path, which may look like an address.
	if _, local := p.LocalAddr.(*net.UnixAddr); local {
		return clientip.Local()
	}
	return clientip.Of(p.Addr)
}

// clientAttribute returns the attribute of a key of a call that a client makes with a
// context.
func clientAttribute(ctx context.Context, key string) rule.Attribute {
	name, ok := strings.CutPrefix(key, metadataPrefix)
	if !ok {
		return rule.Attribute{}
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	return firstOf(md.Get(name))
}

const metadataPrefix = "metadata:"

// firstOf returns the first value as an attribute.
func firstOf(values []string) rule.Attribute {
	if len(values) == 0 {
		return rule.Attribute{}
	}
	return attribute.Text(values[0])
}
