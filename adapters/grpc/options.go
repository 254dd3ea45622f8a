package penstockgrpc

import (
	"context"
	"net/netip"
	"time"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
)

// Options configure how calls are guarded. The zero value is ready to use. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource returns the name of the resource of a call, or "" if the call is not
	// to be guarded, such as a health check or reflection. Defaults to the full
	// method, "/package.Service/Method".
	Resource func(ctx context.Context, fullMethod string) string

	// Origin returns the name of the caller, for example from the peer or the
	// metadata in ctx; "" if it is unknown. Defaults to "".
	Origin func(ctx context.Context) string

	// Tokens returns how many tokens a call takes from its rules, at least 1: its
	// cost, for rules that count more than calls. The request is the message of a
	// unary call, nil for a stream. Fewer are an error, see EntryError. Defaults to
	// 1 for every call.
	Tokens func(ctx context.Context, fullMethod string, request any) int

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and the priority of the call, see
	// [core.Priority]. The request is the message of a unary call, nil for a stream.
	// They go before those of the call with the same key, which are read only if a rule
	// asks for them: see the package documentation. Defaults to nothing.
	Attributes func(ctx context.Context, fullMethod string, request any) []core.Option

	// TrustedProxies are the addresses of proxies in front of the server. The client
	// of a call from one of them is the one that the metadata "x-forwarded-for" names,
	// for the attributes "ip" and "ipPrefix": see [clientip.Options]. For servers only.
	// Defaults to none: the peer is the client.
	TrustedProxies []netip.Prefix

	// UseForwarded selects the metadata "forwarded" (RFC 7239) in place of
	// "x-forwarded-for". Set it if it is what the proxies write; the other is never
	// read. Defaults to false.
	UseForwarded bool

	// IPv6Prefix is how many bits of an IPv6 address identify a client, for the
	// attribute "ipPrefix". Defaults to 64.
	IPv6Prefix int

	// Blocked returns the error of a refused call. If it returns nil, the error is
	// that of [Error]; the call is not made in any case. Defaults to nil.
	Blocked func(ctx context.Context, fullMethod string, refusal *core.BlockError) error

	// EntryError returns the error of a call that did not pass for another reason
	// than a refusal: its context ended while it waited (context.Canceled,
	// context.DeadlineExceeded), the engine is closed ([core.ErrClosed]), or the
	// options are invalid ([core.ErrInvalid]). If it returns nil, the error is that
	// of [Error]; the call is not made in any case. Defaults to nil.
	EntryError func(ctx context.Context, fullMethod string, err error) error

	// Failure returns whether a call that ended with err, never nil, counts as
	// failed. If the caller cancelled the call, err has the code Canceled; if it was
	// under way at its deadline, DeadlineExceeded. A panic always counts, unless the
	// caller had cancelled the call. A call that did not fail does not count as a success
	// either if the code is Canceled or if err is a refusal, [core.IsRefusal]. Defaults
	// to [IsFailure].
	Failure func(err error) bool

	// MaxPushback is the longest wait after which a refused call may be retried by a
	// client with a retry policy, if the deadline of the call allows. All other
	// refusals tell the client not to retry: see the package documentation. For
	// servers only. Defaults to 0: no refused call is retried.
	MaxPushback time.Duration

	// HideRules hides the names of rules and resources from callers: the message of
	// a refusal names none, and it has no QuotaFailure. On a server it applies to
	// refusals that handlers return through [Error], too. It does not change errors
	// that Blocked returns. Defaults to false.
	HideRules bool
}

// clients returns the options for finding the clients of calls.
func (o *Options) clients() clientip.Options {
	return clientip.Options{TrustedProxies: o.TrustedProxies, UseForwarded: o.UseForwarded, IPv6Prefix: o.IPv6Prefix}
}
