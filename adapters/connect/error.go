package penstockconnect

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// The metadata of refusals.
const (
	retryAfterField = "Retry-After"

	// pushbackField tells clients of gRPC not to retry a call.
	pushbackField = "Grpc-Retry-Pushback-Ms"
)

// Error converts an error of [core.Engine.Entry] to a [*connect.Error] that wraps it, for
// handlers that guard resources of their own. See the package documentation for the codes
// and details. It names no rule, but within a guard that does, see Options.ShowRules. It
// returns any other error unchanged, including nil and connect errors.
func Error(err error) error {
	var is *connect.Error
	if errors.As(err, &is) {
		return err
	}
	if rpc.IsEntryError(err) {
		return newError(err, rpc.RefusalIn(err), true)
	}
	return err
}

// entryError is the cause of the error of a call that did not pass.
type entryError struct {
	cause  error
	block  *core.BlockError // nil if no rule refused the call
	hidden bool             // the names of the rule and the resource
}

func (e *entryError) Error() string {
	switch {
	case e.block == nil:
		return e.cause.Error()
	case e.hidden:
		return rpc.HiddenMessage(e.block)
	}
	return e.block.Error()
}

func (e *entryError) Unwrap() error { return e.cause }

// newError returns the error of a call that did not pass, with its details and Retry-After.
func newError(cause error, block *core.BlockError, hidden bool) *connect.Error {
	if block != nil {
		return newRefusal(cause, block, hidden).newError()
	}
	made := connect.NewError(connect.Code(rpc.EntryCode(cause)), &entryError{cause: cause})
	made.Meta() // makes it, so that reading the error later writes nothing
	return made
}

// refusal is what all errors of a refused call have in common.
type refusal struct {
	err        connect.Error // without metadata
	retryAfter []string      // the values of the field; nil if it is not known
}

func newRefusal(cause error, block *core.BlockError, hidden bool) *refusal {
	r := &refusal{err: *connect.NewError(connect.Code(rpc.RefusalCode(block)), &entryError{cause, block, hidden})}
	if block.Reason == rule.RateLimited && !hidden {
		addDetail(&r.err, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject: block.Resource, Description: rpc.QuotaText(block),
		}}})
	}
	if after, known := rpc.RetryAfter(block); known && block.Reason != rule.Injected {
		addDetail(&r.err, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		r.retryAfter = []string{strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}
	}
	return r
}

// newError returns an error of its own for a call: interceptors further out may add metadata
// and details to it. The values are shared.
func (r *refusal) newError() *connect.Error {
	made := new(connect.Error)
	*made = r.err
	meta := made.Meta() // makes it, so that reading the error later writes nothing
	if r.retryAfter != nil {
		meta[retryAfterField] = r.retryAfter
	}
	return made
}

// addDetail adds a detail, unless it cannot be sent: for instance, a name is not valid UTF-8.
func addDetail(to *connect.Error, detail proto.Message) {
	if made, err := connect.NewErrorDetail(detail); err == nil {
		to.AddDetail(made)
	}
}

// refuse returns the error of a call that a rule refused.
func (g *gate) refuse(c *call, block *core.BlockError, origin string, opts []core.Option) error {
	made := g.refusals.Of(block).newError()
	switch {
	case !g.Inbound || block.Reason == rule.Injected: // a server that fails says nothing either
	case c.Peer.Protocol == connect.ProtocolConnect:
		g.answers.SetRefused(made.Meta(), block, origin, opts...)
	default:
		g.answers.SetRetryAfter(made.Meta(), block)
		made.Meta()[pushbackField] = g.noRetry
	}
	return made
}

// passOn returns the error of a call whose handler ended with err: if that is a refusal made
// by [Error] or by a guarded client, one that tells clients of gRPC not to retry, and names
// no rule if those are to be hidden.
func (g *gate) passOn(c *call, err error) error {
	var refused *entryError
	if !errors.As(err, &refused) || refused.block == nil || refused.block.Reason == rule.Injected && refused.hidden != g.options.ShowRules {
		return err
	}
	var present *connect.Error
	if !errors.As(err, &present) {
		return err
	}
	other := refused.hidden == g.options.ShowRules // it names rules, or not, unlike this guard
	pushback := c.Peer.Protocol != connect.ProtocolConnect && len(present.Meta()[pushbackField]) == 0
	spread := g.answers != nil && refused.block.Reason != rule.Injected && len(present.Meta()[retryAfterField]) > 0
	if !other && !pushback && !spread {
		return err
	}
	made := newError(err, refused.block, !g.options.ShowRules)
	meta := made.Meta()
	maps.Copy(meta, present.Meta())
	if other && !g.options.ShowRules {
		removeNames(meta)
	}
	if spread {
		g.answers.SetRetryAfter(meta, refused.block)
	}
	if pushback && refused.block.Reason != rule.Injected {
		meta[pushbackField] = g.noRetry
	}
	return made
}

// withFields returns an error of a handler with more fields of the answer. It is a copy, as handlers may
// share theirs. An error that is none of Connect stays as it is.
func withFields(err error, fields http.Header) error {
	var present *connect.Error
	if len(fields) == 0 || !errors.As(err, &present) {
		return err
	}
	made := connect.NewError(present.Code(), present.Unwrap())
	for _, detail := range present.Details() {
		made.AddDetail(detail)
	}
	maps.Copy(made.Meta(), fields)
	maps.Copy(made.Meta(), present.Meta()) // of a refusal that the handler passes on
	return made
}

// removeNames removes the fields that name rules.
func removeNames(meta http.Header) {
	delete(meta, "Ratelimit")
	delete(meta, "Ratelimit-Policy")
}
