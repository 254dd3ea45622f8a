package penstockgrpc

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/core"
)

// pushbackKey is the trailer by which a server tells the retry policy of a client
// when to try again: in so many milliseconds, or not at all if that is negative.
// Clients look for it only where the server sent no headers before.
const pushbackKey = "grpc-retry-pushback-ms"

// retryAfter returns when such a call can pass, if that is known.
func retryAfter(block *core.BlockError) (after time.Duration, known bool) {
	return block.RetryAfter, block.RetryAfter > 0 && block.RetryAfter != core.Never
}

// pushback is the trailer of a call that ended with the refusal: that the client
// must not try again by itself, unless the wait is one that it may be asked for
// and that its deadline leaves time for.
func (g *gate) pushback(ctx context.Context, refusal *core.BlockError) metadata.MD {
	value := "-1"
	after, known := retryAfter(refusal)
	deadline, limited := ctx.Deadline()
	if known && after <= g.options.MaxPushback && (!limited || after < time.Until(deadline)) {
		value = strconv.FormatInt(int64((after+time.Millisecond-1)/time.Millisecond), 10)
	}
	return metadata.MD{pushbackKey: {value}}
}

// refusalIn returns the refusal that a handler has ended with by means of [Error],
// nil if it ended otherwise, and what the call ends with: the error of the handler,
// unless that is a refusal and the names in it are to be hidden.
func (g *gate) refusalIn(err error) (*core.BlockError, error) {
	refused, ok := errors.AsType[*entryError](err)
	if !ok {
		return nil, err
	}
	block, _ := errors.AsType[*core.BlockError](refused.cause)
	if block != nil && g.options.HideRules {
		err = &entryError{err, true}
	}
	return block, err
}
