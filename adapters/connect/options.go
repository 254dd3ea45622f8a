package penstockconnect

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Call is what options learn about a call. It is valid until the option returns.
type Call struct {
	// Spec describes the procedure.
	Spec connect.Spec

	// Peer is the client on the server's side, and the server on the client's side.
	Peer connect.Peer

	// Header has the header fields of the request. Functions must not change it.
	Header http.Header

	// Message is the request message of a unary call, nil for a stream.
	Message any
}

// Options configure how calls are guarded. The zero value is ready to use. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource returns the name of the resource of a call, or "" if the call is not
	// to be guarded, such as a health check. Defaults to the procedure,
	// "/package.Service/Method".
	Resource func(ctx context.Context, call *Call) string

	// Origin returns the name of the caller, for example from what has authenticated it;
	// "" if it is unknown. Defaults to "".
	Origin func(ctx context.Context, call *Call) string

	// Tokens returns how many tokens a call takes from its rules, at least 1: its
	// cost, for rules that count more than calls. Fewer are an error, see EntryError.
	// Defaults to 1 for every call.
	Tokens func(ctx context.Context, call *Call) int

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and other options of the call, such as
	// [core.NoWait]. They go before those of the call with the same key, which are read
	// only if a rule asks for them: see the package documentation. A [core.Priority] goes
	// before Priority and PriorityKey, but is not passed on. Defaults to nothing.
	Attributes func(ctx context.Context, call *Call) []core.Option

	// Priority returns how important a call is, such as by its procedure, if its caller
	// has not chosen that by PriorityKey. Rules see it, and the context of the handler has
	// it ([core.PriorityFromContext]), so that guarded clients pass it on. For servers
	// only. Defaults to [rule.PriorityNormal].
	Priority func(ctx context.Context, call *Call) rule.Priority

	// PriorityKey is the header field in which callers say how important their call is,
	// usually "Penstock-Priority", in any case. A server reads it only of callers whom
	// Clients or PriorityTrust name; what spells no priority is as if it were
	// missing. A client writes the priority of the context of a call into it, and removes
	// what else is there. Defaults to none.
	PriorityKey string

	// PriorityTrust returns whether the caller may choose the priority of its calls, for
	// example by a client certificate, and the highest that it may choose. It goes before
	// Clients, and is asked only about calls with the header field. For servers
	// only. Defaults to nobody.
	PriorityTrust func(ctx context.Context, call *Call) (most rule.Priority, trusted bool)

	// Throttle refuses calls of targets that reject most of them, or that do not want any
	// yet. See [Answer] for what the end of a call says. A call that it refuses is not one
	// of its resource; the error wraps an [*outgoing.Error]. For clients only. Defaults to
	// none.
	Throttle *outgoing.Throttle

	// RetryBudgets refuse calls that are retries, see [outgoing.WithRetries], beyond a
	// share of all. For clients only. Defaults to none.
	RetryBudgets *outgoing.RetryBudgets

	// Target returns what Throttle and RetryBudgets know a call by, or "" if they are not
	// to look at it. If a server limits each user rather than all together, the user is a
	// part of its name. For clients only. Defaults to the host of the client's URL, with
	// the port if it has one.
	Target func(ctx context.Context, call *Call) string

	// Answer returns what the end of a call says of its target, for Throttle: err is nil
	// for a reply or the first message of a stream. It is not asked if the caller has
	// cancelled the call, or if a guard further in refused it. For clients only. Defaults
	// to [Answer].
	Answer func(err error) outgoing.Answer

	// Clients says which proxies in front of the server name the clients of calls, for the
	// attributes "ip" and "ipPrefix", and which callers may choose the priority of their calls.
	// For servers only. The zero value believes nobody.
	Clients clientip.Options

	// Blocked returns the error of a refused call, usually a [*connect.Error]: it is sent
	// as it is. If it returns nil, the error is the one that the package documentation
	// describes; the call is not made in any case. Defaults to nil.
	Blocked func(ctx context.Context, call *Call, refusal *core.BlockError) error

	// EntryError returns the error of a call that did not pass for another reason than a
	// refusal: its context ended while it waited (context.Canceled,
	// context.DeadlineExceeded), the engine is closed ([core.ErrClosed]), or the options
	// are invalid ([core.ErrInvalid]). If it returns nil, the error is that of [Error]; the
	// call is not made in any case. Defaults to nil.
	EntryError func(ctx context.Context, call *Call, err error) error

	// Failure returns whether a call that ended with err, never nil, counts as failed. If
	// the caller cancelled the call, err has the code Canceled; if it was under way at its
	// deadline, DeadlineExceeded. A panic always counts, unless the caller had cancelled
	// the call. A call that did not fail does not count as a success either if the code is
	// Canceled or if err is a refusal, [core.IsRefusal]. Defaults to [IsFailure].
	Failure func(err error) bool

	// ShowRules tells callers the names of rules and resources: the message of a refusal
	// and its QuotaFailure name them, and so do the RateLimit fields. On a
	// server it is for refusals that handlers return through [Error], too. It does not change
	// errors that Blocked returns. ShowRules of Fields is the same. Defaults to false: these names are internal.
	ShowRules bool

	// Fields selects the answers with RateLimit fields, of the protocol Connect: if they are
	// to be always there, also those of calls that passed, but for errors of handlers that are no
	// [*connect.Error]. For servers only. Defaults to refusals.
	Fields nethttp.Fields

	// Spread has clients that are refused together come back one after the other, by a
	// Retry-After that differs. For servers only. Defaults to up to a fifth more than the wait, see [nethttp.Spread].
	Spread nethttp.Spread
}
