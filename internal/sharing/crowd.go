package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// crowd is what this instance knows of others that have a greater limit, as while a rollout of a
// lower one is under way: they use more of a window than the limit of this instance is, and would
// leave it nothing. Then it counts by their limit, and uses no more than an even part of its own:
// all together pass no more than the greater limit, and those with the lower one no more than it.
// The zero value knows of none. It is guarded by its owner.
type crowd struct {
	limit float64 // of the others: the most that was seen to be used, 0 if there are none
	until clock.Instant
}

// see takes what the store says is used of a window. More by up to slack is what instances owe.
func (c *crowd) see(now clock.Instant, terms *fleet.Terms, used, slack float64) {
	if c.until <= now || used <= terms.Limit && terms.Buckets > 1 { // a fixed one begins with nothing
		*c = crowd{}
	}
	if used > terms.Limit+slack && terms.Limit > 0 {
		c.limit = max(c.limit, used)
		c.until = now.Add(2 * terms.Window)
	}
}

// is says whether others have a greater limit.
func (c *crowd) is(now clock.Instant) bool { return now < c.until }

// terms are what this instance counts by.
func (c *crowd) terms(now clock.Instant, own fleet.Terms) fleet.Terms {
	if c.is(now) {
		own.Limit = max(own.Limit, c.limit)
	}
	return own
}

// part is how many tokens of a window this instance may use, of so many instances.
func (c *crowd) part(own *fleet.Terms, count int) int64 {
	return max(1, int64(own.Limit/float64(max(1, count))))
}

// seeCrowd takes the state of a window that the store tells. Instances may owe a token each, or more.
func (b *Budget) seeCrowd(now clock.Instant, w *windowState) {
	slack := b.terms.Limit/20 + float64(b.member.count)
	b.crowd.see(now, &b.terms, float64(max(w.used(), w.present())), slack)
}

// leftOfPart is how many more tokens may be leased while others have a greater limit.
func (b *Budget) leftOfPart(now clock.Instant) int64 {
	used := b.passes.sum() + b.held.tokens() + b.coming(now, false) + b.coming(now, true)
	return max(0, b.crowd.part(&b.terms, b.member.count)-used)
}

// seeCrowd takes the reply to a call.
func (a *Asker) seeCrowd(now clock.Instant, reply *fleet.Reply) {
	if !a.passes.isOff() && a.owed == 0 && len(a.charges) == 0 {
		a.crowd.see(now, &a.terms, float64(reply.Limit-reply.Remaining), 0)
	}
}

// waitForPart is how long a call has to wait while others have a greater limit, 0 if it may ask.
func (a *Asker) waitForPart(now clock.Instant, n int64) time.Duration {
	if !a.crowd.is(now) || a.passes.sum()+int64(a.underWay)+n <= a.crowd.part(&a.terms, a.member.count) {
		return 0
	}
	return max(1, a.passes.next().Sub(now))
}

// quota is what the reply to a call says of the limit, by the terms of this instance.
func (a *Asker) quota(now clock.Instant, reply *fleet.Reply) (limit, remaining int64) {
	if !a.crowd.is(now) {
		return reply.Limit, max(0, reply.Remaining)
	}
	part := a.crowd.part(&a.terms, a.member.count)
	return int64(math.Floor(a.terms.Limit)), min(max(0, part-a.passes.sum()), max(0, reply.Remaining))
}
