package penstockredis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
)

// Options configure how commands are guarded. The zero value is ready to use. The
// functions must be safe for concurrent use. They must not read the result of a command,
// which is not there yet.
type Options struct {
	// Resource returns the name of the resource of a single command, or "" if the command
	// is not to be guarded. Do not put keys or other arguments into names: there must not be
	// more names than a program can list. Defaults to "redis:" and the name of the command
	// in upper case, such as "redis:GET". Of a thousand different names; further ones, and
	// names of more than 64 bytes, are calls of "redis:OTHER".
	Resource func(ctx context.Context, cmd redis.Cmder) string

	// Pipeline returns the name of the resource of a pipeline, or "" if it is not to be
	// guarded. The commands of a transaction begin with MULTI and end with EXEC. Defaults
	// to "redis:PIPELINE", and "redis:MULTI" for transactions.
	Pipeline func(ctx context.Context, cmds []redis.Cmder) string

	// Tokens returns how many tokens a command takes from its rules, at least 1. A pipeline
	// takes as many as all of its commands, but for the MULTI and EXEC around a transaction.
	// Fewer are an error. Defaults to 1 for every command.
	Tokens func(ctx context.Context, cmd redis.Cmder) int

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and other options of the call, such as
	// [core.Priority] and [core.NoWait]. cmds is a single command, or all of a pipeline. They
	// go before those of the command with the same key: see the package documentation.
	// Defaults to nothing.
	Attributes func(ctx context.Context, cmds []redis.Cmder) []core.Option

	// Blocking returns whether a command may wait at the server for something to happen. The
	// call of such a command ends when it has passed its rules: see the package documentation.
	// For a transaction, in which no command waits, it is not asked. Defaults to [IsBlocking].
	Blocking func(ctx context.Context, cmd redis.Cmder) bool

	// Failure returns whether a command that ended with err, never nil, counts as failed. err
	// is [context.Canceled] if the caller had cancelled the command before it was answered. A
	// pipeline counts as failed if one of its commands does. A call that did not fail does not
	// count as a success either if err is context.Canceled, [redis.ErrClosed] or a refusal,
	// [core.IsRefusal]. A panic always counts. Defaults to [IsFailure].
	Failure func(cmd redis.Cmder, err error) bool

	// Throttle refuses commands and pipelines of a server that rejects most of them. One
	// that it refuses is not sent and no call of its resource; its error is an
	// [*outgoing.Error]. Defaults to none.
	Throttle *outgoing.Throttle

	// RetryBudgets refuse commands and pipelines that are retries, see
	// [outgoing.WithRetries], beyond a share of all. Retries that the client makes by itself
	// are a part of the command: they are bounded by redis.Options.MaxRetries. Defaults to
	// none.
	RetryBudgets *outgoing.RetryBudgets

	// Target returns what Throttle and RetryBudgets know a server by, or "" if they are not
	// to look at a command. cmds is a single command, or all of a pipeline. Set it if clients
	// of several servers share one Throttle. Defaults to "redis".
	Target func(ctx context.Context, cmds []redis.Cmder) string

	// Answer returns what the end of a command with err, which may be nil, says of the
	// server, for Throttle. err is [context.Canceled] if the caller had cancelled the command
	// before it was answered. A pipeline was rejected if one of its commands was. Defaults to
	// [Answer] of err.
	Answer func(cmd redis.Cmder, err error) outgoing.Answer
}
