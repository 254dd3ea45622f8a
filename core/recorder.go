package core

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/recording"
)

// verdict is what became of a call, as far as callers differ in it.
type verdict struct {
	outcome recording.Outcome
	by      *call.Refusals
	waited  bool
	since   clock.Instant // when it began to wait, if it has
	bounded bool          // it could wait: the deadline of its context matters
}

// named returns the resource as recorders know it.
func (r *resource) named() recorder.Resource {
	return recorder.Resource{Place: &r.Recorded, Name: r.Name}
}

// recordAtOnce records what was decided on a call that did not wait, if there is a recorder: it has passed, or was
// refused by a rule. It returns where that is recorded, for its end.
func (r *resource) recordAtOnce(
	ctx context.Context, c *call.Chain, now clock.Instant, tokens int32, opts []Option, by *call.Refusals,
) uint32 {
	rec := r.Env.recorder.Load()
	switch {
	case rec == nil:
		return 0
	case len(opts) > 0 || tokens != 1 || c.HasRecordedKeys():
		v := verdict{by: by}
		if by != nil {
			v.outcome = recording.Refused
		}
		return r.recordDecision(ctx, rec, c, now, tokens, opts, v)
	case by != nil:
		rec.Refused(r.named(), by.Named(), now)
		return 0
	}
	return rec.Passed(r.named(), now)
}

// recordDecision records what was decided on a call, with all that is known of it.
func (r *resource) recordDecision(
	ctx context.Context, rec *recorder.Recorder, c *call.Chain, now clock.Instant, tokens int32, opts []Option, v verdict,
) uint32 {
	var q call.Request
	_ = q.Read(ctx, "", now, opts) // it was read before
	d := recorder.Decision{
		Outcome: v.outcome, By: v.by.Named(), At: now, Tokens: tokens, Priority: q.Priority(), Flags: q.RecordedFlags(), Origin: q.Origin,
	}
	if v.waited {
		d.Waited, d.Wait = true, max(0, now.Sub(v.since))
	}
	if deadline, ok := deadlineOf(ctx, v.bounded); ok {
		d.WasBounded, d.Patience = true, max(1, r.Env.clock.Until(deadline)+d.Wait)
	}
	for _, key := range c.RecordedKeys() {
		if a := q.Attribute(opts, key.Name); a.IsSet() {
			rec.AddAttribute(&d, key, a)
		}
	}
	return rec.Decided(r.named(), &d)
}

// deadlineOf returns the deadline of a call that could wait.
func deadlineOf(ctx context.Context, bounded bool) (deadline time.Time, ok bool) {
	if !bounded || ctx == nil {
		return time.Time{}, false
	}
	return ctx.Deadline()
}

// record records what was decided on a call that had to wait, or could have had to, and returns where.
func (a *admission) record(ctx context.Context, opts []Option, c *call.Chain, by *call.Refusals) uint32 {
	rec := a.resource.Env.recorder.Load()
	if rec == nil {
		return 0
	}
	v := verdict{by: by, bounded: true}
	if by != nil {
		v.outcome = recording.Refused
	}
	if a.wait.node != nil {
		v.waited, v.since = true, a.wait.since
	}
	return a.resource.recordDecision(ctx, rec, c, a.Now, a.Tokens, opts, v)
}

// recordGivenUp records that the context of a call has ended while it waited, if that is the error.
func (a *admission) recordGivenUp(ctx context.Context, opts []Option, err error) {
	rec, plan := a.resource.Env.recorder.Load(), a.resource.Plan.Load()
	if rec != nil && err != nil && a.wait.node != nil && ctx.Err() != nil && !errors.Is(err, ErrBlocked) {
		v := verdict{outcome: recording.GaveUp, waited: true, since: a.wait.since}
		a.resource.recordDecision(ctx, rec, plan.ChainFor(a.Origin), a.Now, a.Tokens, opts, v)
	}
}

// call.RecordedAt returns what remember has noted in a guard with a word.
func (g *Guard) recordedAt(word uint32) uint32 {
	return call.RecordedAt(word, g.state.rest)
}

// recordEnd records how a call ended, if there is a recorder.
func (g *Guard) recordEnd(now clock.Instant, word uint32, longLived bool, record uint32) {
	rec := g.resource.Env.recorder.Load()
	if rec == nil {
		return
	}
	flags := recorder.Flags(0)
	if longLived {
		flags = recorder.LongLived
	}
	switch word & call.StateMask {
	case call.Failed:
		flags |= recorder.Failed
	case call.Ignored:
		flags |= recorder.Ignored
	}
	rec.Ended(g.resource.named(), g.start, now, flags, record)
}

// recordCancel records that a call was not made after all, if there is a recorder.
func (g *Guard) recordCancel(now clock.Instant, record uint32) {
	if rec := g.resource.Env.recorder.Load(); rec != nil {
		rec.Ended(g.resource.named(), g.start, now, recorder.Cancelled, record)
	}
}

// recordSettle records what a call is charged with, if there is a recorder.
func (g *Guard) recordSettle(now clock.Instant, tokens int32) {
	if rec := g.resource.Env.recorder.Load(); rec != nil {
		rec.Settled(g.resource.named(), g.start, now, tokens)
	}
}
