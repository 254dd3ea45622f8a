package penstockconnect

import (
	"context"
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
// and details. It returns any other error unchanged, including nil and connect errors.
func Error(err error) error {
	var is *connect.Error
	if errors.As(err, &is) {
		return err
	}
	for _, cause := range []error{
		core.ErrBlocked, core.ErrClosed, core.ErrInvalid, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, cause) {
			return newError(err, refusalIn(err), false)
		}
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

// refusalIn returns the refusal that an error is or wraps, nil if there is none.
func refusalIn(err error) *core.BlockError {
	var block *core.BlockError
	errors.As(err, &block)
	return block
}

// newError returns the error of a call that did not pass, with its details and Retry-After.
func newError(cause error, block *core.BlockError, hidden bool) *connect.Error {
	made := connect.NewError(entryCode(cause, block), &entryError{cause, block, hidden})
	meta := made.Meta() // makes it, so that reading the error later writes nothing
	if block == nil {
		return made
	}
	if block.Reason == rule.RateLimited && !hidden {
		addDetail(made, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject: block.Resource, Description: rpc.QuotaText(block),
		}}})
	}
	if after, known := rpc.RetryAfter(block); known && block.Reason != rule.Injected {
		addDetail(made, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		meta[retryAfterField] = []string{strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}
	}
	return made
}

// addDetail adds a detail, unless it cannot be sent: for instance, a name is not valid UTF-8.
func addDetail(to *connect.Error, detail proto.Message) {
	if made, err := connect.NewErrorDetail(detail); err == nil {
		to.AddDetail(made)
	}
}

// entryCode returns the code of a call that did not pass.
func entryCode(cause error, block *core.BlockError) connect.Code {
	switch {
	case block != nil:
		return connect.Code(rpc.RefusalCode(block))
	case errors.Is(cause, core.ErrClosed):
		return connect.CodeUnavailable
	case errors.Is(cause, core.ErrInvalid):
		return connect.CodeInternal
	case errors.Is(cause, core.ErrBlocked):
		return connect.CodeResourceExhausted
	}
	return connect.Code(codeOf(cause))
}

// refuse returns the error of a call that a rule refused.
func (g *gate) refuse(c *call, block *core.BlockError, origin string) error {
	made := newError(block, block, g.options.HideRules)
	switch {
	case !g.inbound || block.Reason == rule.Injected: // a server that fails says nothing either
	case c.Peer.Protocol == connect.ProtocolConnect:
		g.answers.SetRefused(made.Meta(), block, origin)
	default:
		made.Meta()[pushbackField] = []string{"-1"}
	}
	return made
}

// passOn returns the error of a call whose handler ended with err: if that is a refusal made
// by [Error] or by a guarded client, one that tells clients of gRPC not to retry, and names
// no rule if those are to be hidden.
func (g *gate) passOn(c *call, err error) error {
	var refused *entryError
	if !errors.As(err, &refused) || refused.block == nil || refused.block.Reason == rule.Injected && !g.options.HideRules {
		return err
	}
	var present *connect.Error
	if !errors.As(err, &present) {
		return err
	}
	hide := g.options.HideRules && !refused.hidden
	pushback := c.Peer.Protocol != connect.ProtocolConnect && len(present.Meta()[pushbackField]) == 0
	if !hide && !pushback {
		return err
	}
	made := newError(err, refused.block, refused.hidden || hide)
	meta := made.Meta()
	maps.Copy(meta, present.Meta())
	if hide {
		removeNames(meta)
	}
	if pushback && refused.block.Reason != rule.Injected {
		meta[pushbackField] = []string{"-1"}
	}
	return made
}

// removeNames removes the fields that name rules.
func removeNames(meta http.Header) {
	delete(meta, "Ratelimit")
	delete(meta, "Ratelimit-Policy")
}
