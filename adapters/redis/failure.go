package penstockredis

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// IsFailure reports whether a command that ended with err failed because of the server or the
// network: there was no answer (a broken connection, a timeout of the connection, of the pool
// or of the context), or the answer says that the server cannot serve it now: LOADING,
// READONLY, OOM, MISCONF, BUSY, NOREPLICAS, MASTERDOWN, CLUSTERDOWN, TRYAGAIN, IOERR, MOVED and
// ASK (after the redirections that a client for clusters follows), and "max number of clients
// reached". EXECABORT is what it names as its cause; the client hides the answer to a command
// of a transaction that the server did not queue, and then it counts as failed.
//
// Not a failure are nil, [redis.Nil], [redis.TxFailedErr], all other answers, such as WRONGTYPE,
// NOAUTH, NOSCRIPT and mistakes in the command, arguments that cannot be sent, the cancellation by the caller, [redis.ErrClosed]
// and a refusal of this process, [github.com/penstock-go/penstock/core.IsRefusal].
func IsFailure(err error) bool {
	switch {
	case err == nil, errors.Is(err, redis.Nil), errors.Is(err, redis.TxFailedErr), errors.Is(err, redis.ErrClosed):
		return false
	case isReply(err):
		return blamesServer(err)
	}
	return !outgoing.IsInconclusive(err) && !strings.HasPrefix(err.Error(), "redis: can't marshal ")
}

// isReply says whether an error is an answer of the server.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// blamesServer says whether an error that the server answered is about its own state.
func blamesServer(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := strings.TrimPrefix(reply.Error(), "ERR ") // some servers write it in front of all others
	text = strings.TrimPrefix(text, "EXECABORT Transaction discarded because of: ")
	if strings.HasPrefix(text, "max number of clients reached") {
		return true
	}
	switch code, _, _ := strings.Cut(text, " "); code {
	case "LOADING", "READONLY", "OOM", "MISCONF", "BUSY", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN",
		"TRYAGAIN", "IOERR", "MOVED", "ASK", "EXECABORT":
		return true
	}
	return false
}

// causeOf returns why a command ended that ended with err: [context.Canceled] if its caller
// had cancelled it, or closed the client, before the server answered.
func causeOf(ctx context.Context, err error) error {
	if !isReply(err) && (outgoing.Canceled(ctx) || errors.Is(err, redis.ErrClosed)) {
		return context.Canceled
	}
	return err
}
