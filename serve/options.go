package serve

import (
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

// The defaults of [RLSOptions].
const (
	DefaultMaxDescriptors = 32
	DefaultMaxEntries     = 32
	DefaultMaxHolds       = 100_000
)

// RLSOptions configure a [RLS]. The zero value is ready to use. Which domains are served, and which
// calls their requests are, documents say: see rules.Domain.
type RLSOptions struct {
	// OriginKey is the key of the entry that names the caller, for rules with an origin.
	// Defaults to "origin".
	OriginKey string

	// MaxDescriptors and MaxEntries bound the descriptors of a request, and the entries of a
	// descriptor. A request that has more ends with INVALID_ARGUMENT and takes nothing.
	// Default to [DefaultMaxDescriptors] and [DefaultMaxEntries].
	MaxDescriptors, MaxEntries int

	// MaxHolds bounds the calls under way that proxies have to end, see [RLS]. A request that needs
	// more ends with UNAVAILABLE and takes nothing. Defaults to [DefaultMaxHolds].
	MaxHolds int

	// Fields selects the answers with RateLimit fields, and whether what clients get to see
	// names rules at all. Defaults to refusals, without names.
	Fields nethttp.Fields

	// Spread has clients that are refused together come back one after the other, by a
	// Retry-After that differs. Defaults to up to a fifth more than the wait, see [nethttp.Spread].
	Spread nethttp.Spread

	// IPv6Prefix is how many bits of an IPv6 address identify a client, for the attribute
	// "ipPrefix". Defaults to 64.
	IPv6Prefix int
}

func (o *RLSOptions) setDefaults() {
	if o.OriginKey == "" {
		o.OriginKey = "origin"
	}
	if o.MaxDescriptors <= 0 {
		o.MaxDescriptors = DefaultMaxDescriptors
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.MaxHolds <= 0 {
		o.MaxHolds = DefaultMaxHolds
	}
}

// HTTPOptions configure how the servers that judge HTTP requests map them to calls. The zero
// value is ready to use.
type HTTPOptions struct {
	// Routes are the routes of the requests, as patterns of [http.ServeMux]: a request for
	// /orders/7 that "GET /orders/{id}" matches is the resource "GET:/orders/{id}". Requests
	// that no route matches are the resource [nethttp.Unmatched], all together, as clients choose
	// paths. A path is matched without its double slashes and dots. Defaults to none.
	Routes []string

	// OriginHeader is the header field that names the caller, for rules with an origin. The
	// proxy has to set it, or remove what clients write there. Defaults to none.
	OriginHeader string

	// PriorityHeader is the field in which callers say how important their requests are, as in
	// [nethttp.Options]. Defaults to none.
	PriorityHeader string

	// Clients says which proxies name the clients of requests, and which callers may choose the
	// priority of theirs. A [ForwardAuth] answers only its TrustedProxies, and the default of these
	// is the addresses of loopback; that of an [ExtAuthz] is none.
	Clients clientip.Options

	// Fields selects the answers with RateLimit fields, and whether what clients get to see
	// names rules at all. Defaults to refusals, without names.
	Fields nethttp.Fields

	// Spread has clients that are refused together come back one after the other, by a
	// Retry-After that differs. Defaults to up to a fifth more than the wait, see [nethttp.Spread].
	Spread nethttp.Spread
}
