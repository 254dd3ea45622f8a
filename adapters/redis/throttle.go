package penstockredis

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
)

// defaultTarget is what the server is called if nothing names it.
const defaultTarget = "redis"

// Answer returns what the end of a command says of the server:
//
//   - LOADING, BUSY, OOM, MASTERDOWN, CLUSTERDOWN and "max number of clients reached", and a
//     command without an answer, are [outgoing.Rejected]: the server is overloaded, cannot be
//     reached or does not answer in time;
//   - every other answer is [outgoing.Accepted], also READONLY and MISCONF, which more time
//     does not change: whether commands succeed is the business of breakers;
//   - commands that were not sent are [outgoing.Ignored]: those that their caller has
//     cancelled, that found no free connection in the pool or the client closed, whose
//     arguments cannot be sent, and that a guard further down refused.
//
// Redis does not say when to come back.
func Answer(err error) outgoing.Answer {
	switch {
	case err == nil:
		return outgoing.Answer{Result: outgoing.Accepted}
	case isReply(err):
		if rejects(replyOf(err)) {
			return outgoing.Answer{Result: outgoing.Rejected}
		}
		return outgoing.Answer{Result: outgoing.Accepted}
	case outgoing.IsInconclusive(err), errors.Is(err, redis.ErrClosed), isUnsent(err):
		return outgoing.Answer{}
	}
	return outgoing.Answer{Result: outgoing.Rejected}
}

// rejects says whether a server turns commands away with an answer.
func rejects(answer string) bool {
	if strings.HasPrefix(answer, tooManyClients) {
		return true
	}
	switch code, _, _ := strings.Cut(answer, " "); code {
	case "LOADING", "BUSY", "OOM", "MASTERDOWN", "CLUSTERDOWN":
		return true
	}
	return false
}

// isUnsent says whether an error of the client is about a command that it has not sent.
func isUnsent(err error) bool {
	return isUnsendable(err) || strings.HasPrefix(err.Error(), "redis: connection pool ")
}

// throttles says whether commands are throttled, or retries counted.
func (h *hook) throttles() bool { return h.options.Throttle != nil || h.options.RetryBudgets != nil }

// begin asks the throttle and the retry budget of the server for a command, or for a
// pipeline. The error is for the caller: nothing is to be sent.
func (h *hook) begin(ctx context.Context, cmd redis.Cmder, pipeline []redis.Cmder) (outgoing.Call, error) {
	target := defaultTarget
	if h.options.Target != nil {
		if cmd != nil {
			pipeline = []redis.Cmder{cmd}
		}
		target = h.options.Target(ctx, pipeline)
	}
	if target == "" {
		return outgoing.Call{}, nil
	}
	p, _ := core.PriorityFromContext(ctx)
	return outgoing.Begin(ctx, h.options.Throttle, h.options.RetryBudgets, target, p)
}

// send sends a command. answer, if it is not nil, gets what its end says of the server.
func (h *hook) send(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook, answer *outgoing.Answer) error {
	err := next(ctx, cmd)
	if answer == nil || isSilence(err) && h.blocks(ctx, h.commands.of(cmd), cmd) {
		return err
	}
	*answer = h.options.Answer(cmd, causeOf(ctx, err))
	return err
}

// sendPipeline sends a pipeline, which was rejected if one of its commands was.
func (h *hook) sendPipeline(
	ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook, answer *outgoing.Answer,
) error {
	err := next(ctx, cmds)
	if answer == nil || isSilence(err) && !h.isTransaction(cmds) && h.anyBlocks(ctx, cmds) {
		return err
	}
	judged := false
	for _, cmd := range cmds {
		if cmd.Err() != nil || err == nil {
			*answer = worse(*answer, h.options.Answer(cmd, causeOf(ctx, cmd.Err())))
			judged = true
		}
	}
	if !judged && len(cmds) > 0 {
		*answer = h.options.Answer(cmds[0], causeOf(ctx, err))
	}
	return err
}

// isSilence says whether there was no answer. That says nothing of the server if the command
// waits there.
func isSilence(err error) bool { return err != nil && !isReply(err) }

// worse returns what two answers say together.
func worse(a, b outgoing.Answer) outgoing.Answer {
	return outgoing.Answer{
		Result: max(a.Result, b.Result), RetryAfter: max(a.RetryAfter, b.RetryAfter), NoRetry: a.NoRetry || b.NoRetry,
	}
}
