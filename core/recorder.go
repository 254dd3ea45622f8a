package core

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
)

// verdict is what became of a call, as far as callers differ in it.
type verdict struct {
	outcome recording.Outcome
	by      *refusals
	waited  bool
	since   clock.Instant // when it began to wait, if it has
	bounded bool          // it could wait: the deadline of its context matters
}

// named returns the resource as recorders know it.
func (r *resource) named() recorder.Resource {
	return recorder.Resource{Place: &r.recorded, Name: r.Name}
}

// named returns the rule as recorders know it; the zero value for none.
func (r *refusals) named() recorder.Rule {
	if r == nil {
		return recorder.Rule{}
	}
	return recorder.Rule{Place: &r.recorded, Key: &r.key}
}

// keysToRecord returns the attributes that rules of the chain look at, the first few.
func (c *chain) keysToRecord() (keys []*recorder.Key) {
	add := func(name string) {
		for _, k := range keys {
			if k.Name == name {
				return
			}
		}
		if len(keys) < recorder.MaxKeys {
			keys = append(keys, &recorder.Key{Name: name})
		}
	}
	for i := range len(c.steps) + len(c.shadows) {
		s := c.slotStep(i)
		for _, key := range s.keys() {
			add(key)
		}
		if s.keyed != nil && s.keyed.sources != nil {
			add(rule.KeyIPPrefix)
		}
	}
	return keys
}

// recordAtOnce records what was decided on a call that did not wait: it has passed, or was refused by a rule. It
// returns where that is recorded, for its end.
func (r *resource) recordAtOnce(
	ctx context.Context, rec *recorder.Recorder, c *chain, now clock.Instant, tokens int32, opts []Option, by *refusals,
) uint32 {
	switch {
	case len(opts) > 0 || tokens != 1 || len(c.recorded) > 0:
		v := verdict{by: by}
		if by != nil {
			v.outcome = recording.Refused
		}
		return r.recordDecision(ctx, rec, c, now, tokens, opts, v)
	case by != nil:
		rec.Refused(r.named(), by.named(), now)
		return 0
	}
	return rec.Passed(r.named(), now)
}

// recordDecision records what was decided on a call, with all that is known of it.
func (r *resource) recordDecision(
	ctx context.Context, rec *recorder.Recorder, c *chain, now clock.Instant, tokens int32, opts []Option, v verdict,
) uint32 {
	d := recorder.Decision{Outcome: v.outcome, By: v.by.named(), At: now, Tokens: tokens}
	if !areAttributes(opts) {
		var q request
		q.read(nil, opts) //nolint:staticcheck // the context is not looked at
		d.Priority, d.Flags, d.Origin = q.Priority(), q.recordedFlags(), originOf(opts)
	}
	if v.waited {
		d.Waited, d.Wait = true, max(0, now.Sub(v.since))
	}
	if deadline, ok := deadlineOf(ctx, v.bounded); ok {
		d.WasBounded, d.Patience = true, max(1, r.env.clock.Until(deadline)+d.Wait)
	}
	q := request{ctx: ctx}
	for _, key := range c.recorded {
		if a := q.attribute(opts, key.Name); a.IsSet() {
			rec.AddAttribute(&d, key, a)
		}
	}
	return rec.Decided(r.named(), &d)
}

// recordedFlags returns what options say that a recording has as flags.
func (q *request) recordedFlags() (flags recording.Flags) {
	if q.Inbound() {
		flags |= recording.Inbound
	}
	if q.noWait {
		flags |= recording.NoWait
	}
	if q.LongLived() {
		flags |= recording.LongLived
	}
	return flags
}

// deadlineOf returns the deadline of a call that could wait.
func deadlineOf(ctx context.Context, bounded bool) (deadline time.Time, ok bool) {
	if !bounded || ctx == nil {
		return time.Time{}, false
	}
	return ctx.Deadline()
}

// record records what was decided on a call that had to wait, or could have had to, and returns where.
func (a *admission) record(ctx context.Context, opts []Option, c *chain, by *refusals) uint32 {
	rec := a.resource.env.recorder.Load()
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
	rec, plan := a.resource.env.recorder.Load(), a.resource.plan.Load()
	if rec != nil && err != nil && a.wait.node != nil && ctx.Err() != nil && !errors.Is(err, ErrBlocked) {
		v := verdict{outcome: recording.GaveUp, waited: true, since: a.wait.since}
		a.resource.recordDecision(ctx, rec, plan.chainFor(opts), a.Now, a.Tokens, opts, v)
	}
}

// remember returns the rest of a guard that notes where it is recorded that the call has passed, as its end
// is written beside it. 0 is nowhere: of many tokens or a wide ticket, and of the very first record, the end
// is a record of its own. Guards with a guardRecord have it there.
func remember(record, word, rest uint32) uint32 {
	if record == 0 || record > maxRemembered || rest > tokenMask || word&whereMask > carried {
		return rest
	}
	return remembers | record<<rememberedShift | rest
}

// recordedAt returns what remember has noted in a guard with a word.
func (g *Guard) recordedAt(word uint32) uint32 {
	if rest := g.state.rest; word&whereMask <= carried && rest&remembers != 0 {
		return rest &^ remembers >> rememberedShift
	}
	return 0
}

// recordEnd records how a call ended, if there is a recorder.
func (g *Guard) recordEnd(now clock.Instant, word uint32, longLived bool, record uint32) {
	rec := g.resource.env.recorder.Load()
	if rec == nil {
		return
	}
	flags := recording.Flags(0)
	if longLived {
		flags = recording.LongLived
	}
	switch word & stateMask {
	case failed:
		flags |= recording.Failed
	case ignored:
		flags |= recording.Ignored
	}
	rec.Ended(g.resource.named(), g.start, now, flags, record)
}

// recordCancel records that a call was not made after all, if there is a recorder.
func (g *Guard) recordCancel(now clock.Instant, record uint32) {
	if rec := g.resource.env.recorder.Load(); rec != nil {
		rec.Ended(g.resource.named(), g.start, now, recording.Cancelled, record)
	}
}

// recordSettle records what a call is charged with, if there is a recorder.
func (g *Guard) recordSettle(now clock.Instant, tokens int32) {
	if rec := g.resource.env.recorder.Load(); rec != nil {
		rec.Settled(g.resource.named(), g.start, now, tokens)
	}
}
