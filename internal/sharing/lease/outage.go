package lease

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/outage"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// beginOutage has the budget decide by itself. err is what the store says to its requests,
// nil if the backend does not answer at all.
func (b *Budget) beginOutage(now clock.Instant, err error) {
	b.count(now)
	if b.outage.Active {
		b.outage.Err = err
		return
	}
	b.outage = outage.Outage{Active: true, Since: now, Err: err, Owed: b.passes.Empty()}
	b.outage.Owed.Add(b.owed)
	b.outage.Fair, b.outage.IsNew = b.fair(now)
	b.outage.Used, b.outage.Left, b.outage.IsLeftKnown = b.portion.Present(&b.passes)
	b.outage.DecideBy(b.onOutage, &b.terms, b.set.Sharers(b.outage.IsNew, b.onOutage), &b.passes, b.set.Random().Float64())
	b.isFull, b.retryAt = false, 0
	b.set.queue.set(b, now)
}

// fair is how many tokens per second are the part of this instance, and whether nothing is known
// of that.
func (b *Budget) fair(now clock.Instant) (perSecond float64, isNew bool) {
	fraction, isKnown := b.portion.Fraction()
	if b.mode == fleet.ModeWindow {
		perSecond = fraction * b.fleetRate()
		if b.demand.PerSecond() > b.even() {
			perSecond = usage.EvenedInWindow(perSecond, b.even())
		}
		return perSecond, !isKnown
	}
	passed := b.passedOfLate()
	if now.Sub(b.steadyAt) < 2*b.set.Timeout() { // nothing was granted since
		passed = max(passed, b.steady)
	}
	if b.isFull { // calls come at that rate on average, and more often at times
		const surplus = 1.2
		passed *= surplus
	} else { // tokens are used as soon as they come, and the average is highest then
		passed -= passed / (4 * b.requestRate() * b.rateMemory().Seconds())
		passed = usage.Evened(passed, b.even(), b.rateMemory())
	}
	return passed, !isKnown && b.group == nil
}

// isAsleep says whether nothing happens to the budget until a call wakes it, which may pass what
// it could pass in an outage as well.
func (b *Budget) isAsleep() bool {
	if b.outage.Active || b.onOutage != fleet.OutageLast && b.onOutage != fleet.OutageShare {
		return false
	}
	return b.quiet && packed.Tokens(b.packed.Load()).IsQuiet()
}

// joinOutage begins an outage that has begun while the budget was asleep.
func (b *Budget) joinOutage(now clock.Instant) {
	if b.set.IsOut() && !b.outage.Active {
		b.beginOutage(now, nil)
	}
}

// refusedBy notes that the store has answered a request with an error.
func (b *Budget) refusedBy(now clock.Instant, err error) {
	if b.place < 0 {
		return // it was released
	}
	if b.outage.Err == nil {
		b.set.NoteRefusal(b.terms.Key, err)
		b.group.Refused(err)
	}
	b.beginOutage(now, err)
	b.outage.AskAt = now.Add(b.set.Jitter(exchange.MaxProbeWait))
}

// backIsUp notes that the store answers the requests of the budget. What passed meanwhile is paid
// as far as it still matters.
func (b *Budget) backIsUp(now clock.Instant) {
	if !b.outage.Active {
		return
	}
	b.count(now)
	if b.outage.Err != nil {
		b.outage.Err = nil
		b.set.NoteAccepted()
		b.group.Accepted()
	}
	b.retryAt = 0 // before all that was sent meanwhile has come back
	b.set.queue.set(b, now)
	if b.mode == fleet.ModeWindow {
		present, before := b.outage.Chargeable(now.Add(b.set.Lead()), b.onOutage, &b.terms, b.terms.Buckets)
		b.owedBefore = before
		b.owes(present + usage.Sum(before))
		b.outage.End(now.Add(exchange.ReturnTime))
		return
	}
	b.owes(b.outage.ChargeableOfBucket(now, b.owed, &b.terms, b.queue()))
	b.outage = outage.Outage{}
}

// owes sets what is owed, and leaves the word as it is: the next look corrects the debt.
func (b *Budget) owes(tokens int64) {
	b.debt += tokens - b.owed
	b.owed = tokens
}

// oweLess notes that less is owed: of what is owed in buckets before the present one, what is not
// owed in that one.
func (b *Budget) oweLess(tokens int64) {
	b.owed -= tokens
	more := usage.Sum(b.owedBefore) - b.owed
	for i := 0; more > 0; i++ {
		part := min(more, b.owedBefore[i])
		b.owedBefore[i] -= part
		more -= part
	}
}

// allow sets how many tokens may be used that were not leased, and returns how many more that
// are than before.
func (b *Budget) allow(now clock.Instant) int64 {
	before := b.debt
	b.debt = b.allowed(now)
	return b.debt - before
}

// allowed returns how many tokens may be used that were not leased.
func (b *Budget) allowed(now clock.Instant) int64 {
	switch {
	case b.released.Load() || b.terms.Limit == 0:
		return 0
	case b.outage.Active:
		b.outage.Recount(b.onOutage, &b.terms, b.set.Sharers(b.outage.IsNew, b.onOutage), &b.passes)
		return b.owed + b.owedSent + b.allowedInOutage(now)
	case b.mode == fleet.ModeWindow && b.outage.IsBounding():
		return min(b.windowDebt(now), b.most.Load(), b.owed+b.owedSent+b.bounded(now))
	case b.mode == fleet.ModeWindow:
		return min(b.windowDebt(now), b.most.Load())
	}
	debt := b.idleDebt(now)
	if b.isFull {
		most := max(1, b.large, int64(b.fleetRate()*b.debtTime().Seconds())) // whatever the demand
		debt = max(debt, 1, min(int64(b.need(b.debtTime())), most))
	}
	return min(debt, b.most.Load())
}

// allowedInOutage is how many more tokens may be used in an outage than are leased.
func (b *Budget) allowedInOutage(now clock.Instant) int64 {
	switch {
	case b.outage.Window == nil:
	case !b.set.Running(): // nobody would look again when a window has ended
		return 0
	default:
		return max(0, b.outage.Tokens(&b.passes)-b.held.tokens())
	}
	return max(b.outage.Tokens(&b.passes), b.idleDebt(now))
}

// debtTime is how long calls may pass on debt: until tokens come.
func (b *Budget) debtTime() time.Duration { return max(minDebtTime, 3*b.set.RoundTrip()/2) }

// windowDebt is allowed of a window: at most what the even share, or what passed of late,
// needs until tokens come, whatever the demand. There is none if the store had nothing left
// when it last answered: so each instance can go over the limit only once by that much.
func (b *Budget) windowDebt(now clock.Instant) int64 {
	debt := b.idleDebt(now)
	if b.isFull || b.demanded() < b.even() {
		debt = max(debt, 1)
	}
	if b.isFull {
		rate := min(b.demanded(), max(b.even(), b.passed.PerSecond()))
		debt = max(debt, int64(b.needOf(rate, b.debtTime())))
	}
	if now.Sub(b.steadyAt) < b.terms.Window {
		// All have their part of what is left, or one token while there is any.
		debt = min(debt, max(int64(b.left/float64(max(1, b.set.Instances()))), int64(min(1, b.left))))
	}
	return debt
}

// passesNow is how many tokens per second may pass in an outage: what the bucket lets pass or,
// if that is less, one call whenever there was none for long enough.
func (b *Budget) passesNow() float64 {
	rate := b.outage.Passes(&b.terms)
	if b.outage.Window != nil || b.terms.Limit == 0 || b.onOutage == fleet.OutageClosed || b.set.Instances() == 0 {
		return rate
	}
	const betweenIdleCalls = 2 * exchange.Tick // one look sees the call, the next one allows another
	return max(rate, min(b.even(), 1/betweenIdleCalls.Seconds()))
}

// idleDebt is how many tokens an instance may use of which nothing passed for long: its even
// share of that time, at most what one call takes; none while the store grants nothing.
func (b *Budget) idleDebt(now clock.Instant) int64 {
	mayNot := b.retryAt > now
	if b.outage.Active {
		mayNot = b.onOutage == fleet.OutageClosed || b.set.Instances() == 0
	}
	if mayNot {
		return 0
	}
	share := b.even() * now.Sub(b.lastPass).Seconds()
	return int64(min(share, float64(max(1, b.large)), float64(b.most.Load())))
}
