package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// seeCrowd takes the state of a window that the store tells. Instances may owe a token each, or more.
func (b *Budget) seeCrowd(now clock.Instant, w *windowState) {
	slack := b.terms.Limit/20 + float64(b.member.count)
	b.crowd.See(now, &b.terms, float64(max(w.used(), w.present())), slack)
}

// leftOfPart is how many more tokens may be leased while others have a greater limit.
func (b *Budget) leftOfPart(now clock.Instant) int64 {
	used := b.passes.Sum() + b.held.tokens() + b.coming(now, false) + b.coming(now, true)
	return max(0, b.crowd.Part(&b.terms, b.member.count)-used)
}

// seeCrowd takes the reply to a call.
func (a *Asker) seeCrowd(now clock.Instant, reply *fleet.Reply) {
	if !a.passes.IsOff() && a.owed == 0 && len(a.charges) == 0 {
		a.crowd.See(now, &a.terms, float64(reply.Limit-reply.Remaining), 0)
	}
}

// waitForPart is how long a call has to wait while others have a greater limit, 0 if it may ask.
func (a *Asker) waitForPart(now clock.Instant, n int64) time.Duration {
	if !a.crowd.Is(now) || a.passes.Sum()+int64(a.underWay)+n <= a.crowd.Part(&a.terms, a.member.count) {
		return 0
	}
	return max(1, a.passes.Next().Sub(now))
}

// quota is what the reply to a call says of the limit, by the terms of this instance.
func (a *Asker) quota(now clock.Instant, reply *fleet.Reply) (limit, remaining int64) {
	if !a.crowd.Is(now) {
		return reply.Limit, max(0, reply.Remaining)
	}
	part := a.crowd.Part(&a.terms, a.member.count)
	return int64(math.Floor(a.terms.Limit)), min(max(0, part-a.passes.Sum()), max(0, reply.Remaining))
}
