package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/rule"
)

// refusalLines is how many refusals a second are logged, for all resources together.
const refusalLines = 10

// refuseAtOnce refuses a call that did not wait and took nothing, by the step whose answer that is.
func (r *resource) refuseAtOnce(ctx context.Context, q *call.Request, opts []Option, c *call.Chain, said call.Answer) error {
	s := &c.Steps[said.Which]
	if r.Env.recorder.Load() != nil {
		r.recordAtOnce(ctx, c, q.Now, q.Tokens, opts, s.Refusals)
	}
	if c.IsOneStep && said.Decision == rule.Block && said.Ticket != 0 && !s.Denies { // as refuseBy would, 5 ns later
		return r.refuse(ctx, q.Now, q.Tokens, s.Refusals, said.Ticket.RetryTime())
	}
	return r.refuseBy(ctx, q, opts, c, said, nil)
}

// refuseBy refuses a call that holds some tickets by the step whose answer that is.
func (r *resource) refuseBy(ctx context.Context, q *call.Request, opts []Option, c *call.Chain, said call.Answer, held *call.HeldTickets) error {
	by := c.Steps[said.Which].Refusals
	if q.DemotedBy != nil {
		by = by.OfDemoted()
	}
	q.CountDemotion()
	return r.refuse(ctx, q.Now, q.Tokens, by, c.RetryAfter(said, q, opts, held))
}

// refuse counts and reports a call that a rule refuses, and returns its error.
func (r *resource) refuse(
	ctx context.Context, now clock.Instant, tokens int32, by *call.Refusals, retryAfter time.Duration,
) error {
	err := (*BlockError)(&by.RefusalOf(retryAfter).Err)
	by.Tally.Refused.Block(now, tokens)
	if r.Evicted.Load() {
		r.Env.resources.CountIfForgotten(r.of(), tokens)
	}
	if r.Env.observer.Refused != nil {
		r.Env.observer.Refused(call.OrBackground(ctx), err)
	}
	if !r.isLogged(now) && r.markLogged(now) {
		r.logRefusal(now, err)
	}
	return err
}

// logRefusal logs a refusal, as is done for one in each second of a resource, and for the
// first few in each second of all resources.
func (r *resource) logRefusal(now clock.Instant, err *BlockError) {
	skipped, ok := r.Env.refusalLines.Take(now, refusalLines, r.Env.clock.Now)
	if !ok {
		return
	}
	facts := []any{
		slog.String("resource", lines.Cut(err.Resource)),
		slog.String("kind", string(err.Kind)),
		slog.String("rule", lines.Cut(err.Rule)),
	}
	if err.RetryAfter != 0 || err.Reason != rule.Denied { // waiting does not make a caller one who may call
		facts = append(facts, slog.String("retryAfter", err.retryText()))
	}
	if skipped > 0 {
		facts = append(facts, slog.Uint64("linesSkipped", skipped))
	}
	r.Env.events.add(Event{
		At: now, Type: eventRefusal, Resource: err.Resource, Kind: err.Kind, Rule: err.Rule, RetryAfter: err.RetryAfter,
	})
	r.Env.log.Info("penstock: call refused, further refusals in this second are not logged", facts...)
	r.Env.journal.Flush(now, false)
}

// isLogged reports whether a refusal in the second of now is known to have been logged.
func (r *resource) isLogged(now clock.Instant) bool {
	left := r.LoggedUntil.Load() - int64(now)
	return left > 0 && left <= int64(time.Second)
}

// markLogged reports whether a refusal at now is the first of its second, and so
// the one that is logged. The mark only moves forward: a call of an earlier
// second that is refused late is not logged. A clock is not supposed to go back;
// where one does, the mark follows it, so that the log does not stay silent.
func (r *resource) markLogged(now clock.Instant) bool {
	marked, end := r.LoggedUntil.Load(), endOfSecond(now)
	if marked == end {
		return false
	}
	if marked > end {
		// Read after the mark, a clock that never goes back is not behind it.
		if end = endOfSecond(r.Env.clock.Now()); end >= marked {
			return false
		}
	}
	return r.LoggedUntil.CompareAndSwap(marked, end)
}

func endOfSecond(now clock.Instant) int64 {
	return (int64(now)/int64(time.Second) + 1) * int64(time.Second)
}
