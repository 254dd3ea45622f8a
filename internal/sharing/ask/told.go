package ask

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// seeCrowd takes the reply to a call.
func (a *Asker) seeCrowd(now clock.Instant, reply *fleet.Reply) {
	if !a.passes.IsOff() && a.owed == 0 && len(a.charges) == 0 {
		a.crowd.See(now, &a.terms, float64(reply.Limit-reply.Remaining), 0)
	}
}

// waitForPart is how long a call has to wait while others have a greater limit, 0 if it may ask.
func (a *Asker) waitForPart(now clock.Instant, n int64) time.Duration {
	if !a.crowd.Is(now) || a.passes.Sum()+int64(a.underWay)+n <= a.crowd.Part(&a.terms, a.set.Instances()) {
		return 0
	}
	return max(1, a.passes.Next().Sub(now))
}

// quota is what the reply to a call says of the limit, by the terms of this instance.
func (a *Asker) quota(now clock.Instant, reply *fleet.Reply) (limit, remaining int64) {
	if !a.crowd.Is(now) {
		return reply.Limit, max(0, reply.Remaining)
	}
	part := a.crowd.Part(&a.terms, a.set.Instances())
	return int64(math.Floor(a.terms.Limit)), min(max(0, part-a.passes.Sum()), max(0, reply.Remaining))
}

// Used returns how many tokens of a window all instances have used, by the last answer of the backend
// and what was settled before it, and a number of that window: of windows of one length the later one
// has the higher number. It is not known before an answer, and of buckets never. Of [fleet.AskSlidingLog] the
// number changes once in each time as long as the window.
func (a *Asker) Used() (tokens, window int64, known bool) {
	a.set.Mu.Lock()
	defer a.set.Mu.Unlock()
	return a.told.Tokens, a.told.Number, a.told.IsKnown
}

// learnUse takes a reply. The mutex is held.
func (a *Asker) learnUse(now clock.Instant, reply *fleet.Reply) {
	a.told.Until = now.Add(a.terms.Window)
	switch a.operation {
	case fleet.AskFixedWindow:
		a.told.Number = reply.Bucket
		if reply.Reset > 0 {
			a.told.Until = now.Add(reply.Reset)
		}
	case fleet.AskSlidingLog:
		a.told.Number = int64(now) / int64(a.terms.Window)
	default:
		a.told = usage.WindowUse{}
		return
	}
	a.told.Tokens, a.told.IsKnown = reply.Limit-a.balance.left.Load(), true
}
