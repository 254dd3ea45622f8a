package penstockgrpc

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// pushbackKey is the trailer with which a server tells a client with a retry policy
// after how many milliseconds to retry; a negative value means not to retry. Clients
// use it only if the server has not sent headers before.
const pushbackKey = "grpc-retry-pushback-ms"

// pushback returns the trailer of a refused call: not to retry, unless the wait is
// within MaxPushback and the deadline of the call: then it differs, see Spread. That of an injected fault has none: a
// server that fails says nothing either.
func (g *gate) pushback(ctx context.Context, refusal *core.BlockError) metadata.MD {
	if refusal.Reason == rule.Injected {
		return nil
	}
	after, known := rpc.RetryAfter(refusal)
	deadline, limited := ctx.Deadline()
	if !known || after > g.options.MaxPushback || limited && after >= time.Until(deadline) {
		return g.noRetry
	}
	if later := g.options.Spread.Wait(after); !limited || later < time.Until(deadline) {
		after = later
	}
	return metadata.MD{pushbackKey: {strconv.FormatInt(int64((after+time.Millisecond-1)/time.Millisecond), 10)}}
}

// refusalIn returns the refusal that a handler has returned through [Error], nil if
// there is none, and the error of the call: that of the handler, with the names
// hidden if it is a refusal, unless ShowRules is set.
func (g *gate) refusalIn(err error) (*core.BlockError, error) {
	if err == nil { // most calls; errors.As has what it finds on the heap
		return nil, nil
	}
	var refused *entryError
	if !errors.As(err, &refused) {
		return nil, err
	}
	block := rpc.RefusalIn(refused.cause)
	if block != nil && (refused.hideRules || !g.options.ShowRules) {
		err = &entryError{cause: err, hideRules: !g.options.ShowRules, spread: g.spread()}
	}
	return block, err
}
