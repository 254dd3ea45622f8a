package penstockredis

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
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
		return blamesServer(replyOf(err))
	}
	return !outgoing.IsInconclusive(err) && !isUnsendable(err)
}

// isUnsendable says whether an error is about an argument that cannot be sent.
func isUnsendable(err error) bool { return strings.HasPrefix(err.Error(), "redis: can't marshal ") }

// isReply says whether an error is an answer of the server.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// tooManyClients is the beginning of an answer that has no code.
const tooManyClients = "max number of clients reached"

// replyOf returns what the server answered, without what some servers and proxies write in
// front of it; of a transaction, its cause. The error must be an answer.
func replyOf(err error) string {
	var reply redis.Error
	errors.As(err, &reply)
	text := strings.TrimPrefix(reply.Error(), "ERR ")
	return strings.TrimPrefix(text, "EXECABORT Transaction discarded because of: ")
}

// blamesServer says whether an answer is about the server's own state.
func blamesServer(text string) bool {
	if strings.HasPrefix(text, tooManyClients) {
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
	if err != nil && !isReply(err) && (core.Canceled(ctx) || errors.Is(err, redis.ErrClosed)) {
		return context.Canceled
	}
	return err
}
