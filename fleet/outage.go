package fleet

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// outage is what a limit does while the backend does not answer its requests.
type outage struct {
	active bool
	since  clock.Instant
	err    error         // what the backend says to requests of this limit; nil if it does not answer at all
	askAt  clock.Instant // when to ask it again
	bucket localBucket
	fair   float64 // tokens per second that passed before

	// recovered is up to when a window goes on as before, after the backend is back, so that
	// the store learns what passes; 0 before it is back.
	recovered clock.Instant
}

// unlimited is how many tokens [OutageOpen] lets pass between two looks at a budget.
const unlimited = 1 << 26

// longestRecovery is the longest of windows that go on so.
const longestRecovery = 2 * time.Second

// use notes that tokens passed that were not leased.
func (o *outage) use(tokens int64) {
	if o.active {
		o.bucket.level -= float64(tokens)
	}
}

// isRecovering says whether the backend is back, and what passes is to be paid.
func (o *outage) isRecovering() bool { return o.active && o.recovered != 0 }

// hasRecovered says whether that is over.
func (o *outage) hasRecovered(now clock.Instant) bool { return o.isRecovering() && o.recovered <= now }

// wants returns how many tokens to ask for, to see whether the store grants some again.
func (o *outage) wants(now clock.Instant) int64 {
	if o.err != nil && o.askAt <= now {
		return 1
	}
	return 0
}

// fallback returns the bucket that decides in an outage, of a limit of which so many tokens
// per second passed of late. count is the number of instances, 0 if it was never known.
func fallback(onOutage OnOutage, terms *Terms, passed float64, count int) localBucket {
	switch {
	case terms.Limit == 0:
		return localBucket{}
	case onOutage == OutageOpen:
		return localBucket{rate: 1e12, most: unlimited, level: unlimited}
	case onOutage == OutageClosed:
		return localBucket{}
	case onOutage == OutageShare && count > 0:
		return newLocalBucket(terms.PerSecond() / float64(count))
	case onOutage == OutageShare:
		return localBucket{}
	default:
		return newLocalBucket(min(passed, terms.PerSecond()))
	}
}

// beginOutage has the budget decide by itself. err is what the store says to its requests,
// nil if the backend does not answer at all.
func (b *Budget) beginOutage(now clock.Instant, err error) {
	b.count(now)
	if b.outage.active {
		b.outage.recovered = 0
		b.outage.err = err
		return
	}
	passed := b.passedOfLate()
	if now.Sub(b.steadyAt) < 2*b.member.config.Timeout { // nothing was granted since
		passed = max(passed, b.steady)
	}
	if b.isFull { // calls come at that rate on average, and more often at times
		passed *= b.surplus()
	}
	b.outage = outage{
		active: true, since: now, err: err, fair: passed,
		bucket: fallback(b.onOutage, &b.terms, passed, b.member.count),
	}
	b.isFull, b.retryAt = false, 0
	b.member.queue.set(b, now)
}

// isAsleep says whether nothing happens to the budget until a call wakes it, which may pass what
// it could pass in an outage as well.
func (b *Budget) isAsleep() bool {
	if b.outage.active || b.onOutage != OutageLast && b.onOutage != OutageShare {
		return false
	}
	return b.quiet && packedTokens(b.packed.Load()).isQuiet()
}

// joinOutage begins an outage that has begun while the budget was asleep.
func (b *Budget) joinOutage(now clock.Instant) {
	if b.member.connection.out && !b.outage.active {
		b.beginOutage(now, nil)
	}
}

// surplus is by how much more may pass in an outage than passed before: of a window, no more
// than it had left, when all instances pass so much more.
func (b *Budget) surplus() float64 {
	const most = 1.2
	if b.mode != ModeWindow || !b.isKnown {
		return most
	}
	return min(most, b.terms.Limit/max(1, b.terms.Limit-b.left))
}

// refusedBy notes that the store has answered a request with an error.
func (b *Budget) refusedBy(now clock.Instant, err error) {
	if b.place < 0 {
		return // it was released
	}
	if b.outage.err == nil {
		b.member.noteRefusal(b.terms.Key, err)
		b.group.refused(err)
	}
	b.beginOutage(now, err)
	b.outage.askAt = now.Add(b.member.jitter(maxProbeWait))
}

// backIsUp notes that the store answers the requests of the budget.
func (b *Budget) backIsUp(now clock.Instant) {
	if !b.outage.active || b.outage.recovered != 0 {
		return
	}
	b.count(now)
	if b.outage.err != nil {
		b.outage.err = nil
		b.member.noteAccepted()
		b.group.accepted()
	}
	b.member.queue.set(b, now)
	knowsRate := b.onOutage == OutageLast || b.onOutage == OutageShare
	if b.mode == ModeWindow && b.terms.Window <= longestRecovery && knowsRate {
		b.owes(0)
		b.outage.recovered = now.Add(b.terms.Window)
		return
	}
	b.owes(b.chargeable(now))
	b.endOutage(now)
}

func (b *Budget) endOutage(clock.Instant) { b.outage = outage{} }

// owes sets what is owed, and leaves the word as it is: the next look corrects the debt.
func (b *Budget) owes(tokens int64) {
	b.debt += tokens - b.owed
	b.owed = tokens
}

// chargeable is how much of what passed in the outage still matters: of a bucket, what
// passed in the time in which it fills, and what was more than before; of a window, what
// passed in it.
func (b *Budget) chargeable(now clock.Instant) int64 {
	lasted := now.Sub(b.outage.since).Seconds()
	window := b.terms.Window.Seconds()
	owed := float64(b.owed)
	if b.mode == ModeWindow {
		return int64(min(owed*min(1, window/max(lasted, 1e-9)), b.terms.Limit))
	}
	rate := b.fleetRate()
	if rate == 0 {
		return 0
	}
	fair := b.outage.fair
	if !b.outage.bucket.isUnlimited() {
		fair = max(fair, b.outage.bucket.rate)
	}
	recent := fair * min(lasted, b.terms.Burst/rate)
	more := max(0, owed-fair*lasted)
	return int64(min(owed, recent+more, b.terms.Burst+rate*b.queue().Seconds()))
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
	case b.outage.active:
		if b.onOutage == OutageShare {
			level := b.outage.bucket.level
			b.outage.bucket = fallback(OutageShare, &b.terms, 0, b.member.count)
			b.outage.bucket.level = min(level, b.outage.bucket.most)
		}
		return b.owed + b.owedSent + max(b.outage.bucket.tokens(), b.idleDebt(now))
	case b.mode == ModeWindow:
		return min(b.windowDebt(now), b.most.Load())
	}
	debt := b.idleDebt(now)
	if b.isFull {
		most := max(1, b.large, int64(b.fleetRate()*b.debtTime().Seconds())) // whatever the demand
		debt = max(debt, 1, min(int64(b.need(b.debtTime())), most))
	}
	return min(debt, b.most.Load())
}

// debtTime is how long calls may pass on debt: until tokens come.
func (b *Budget) debtTime() time.Duration { return max(minDebtTime, 3*b.member.roundTrip()/2) }

// windowDebt is allowed of a window: at most what the even share, or what passed of late,
// needs until tokens come, whatever the demand. There is none if the store had nothing left
// when it last answered: so each instance can go over the limit only once by that much.
func (b *Budget) windowDebt(now clock.Instant) int64 {
	debt := b.idleDebt(now)
	if b.isFull || b.demanded() < b.even() {
		debt = max(debt, 1)
	}
	if b.isFull {
		rate := min(b.demanded(), max(b.even(), b.passed.perSecond()))
		debt = max(debt, int64(b.needOf(rate, b.debtTime())))
	}
	if now.Sub(b.steadyAt) < b.terms.Window {
		// All have their part of what is left, or one token while there is any.
		debt = min(debt, max(int64(b.left/float64(max(1, b.member.count))), int64(min(1, b.left))))
	}
	return debt
}

// passesNow is how many tokens per second may pass in an outage: what the bucket lets pass or,
// if that is less, one call whenever there was none for long enough.
func (b *Budget) passesNow() float64 {
	rate := b.outage.bucket.passes()
	if b.terms.Limit == 0 || b.onOutage == OutageClosed || b.member.count == 0 {
		return rate
	}
	const betweenIdleCalls = 2 * tick // one look sees the call, the next one allows another
	return max(rate, min(b.even(), 1/betweenIdleCalls.Seconds()))
}

// idleDebt is how many tokens an instance may use of which nothing passed for long: its even
// share of that time, at most what one call takes; none while the store grants nothing.
func (b *Budget) idleDebt(now clock.Instant) int64 {
	mayNot := b.retryAt > now
	if b.outage.active {
		mayNot = b.onOutage == OutageClosed || b.member.count == 0
	}
	if mayNot {
		return 0
	}
	share := b.even() * now.Sub(b.lastPass).Seconds()
	return int64(min(share, float64(max(1, b.large)), float64(b.most.Load())))
}
