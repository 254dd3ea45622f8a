package sharing

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// outage is what a limit does while the backend does not answer its requests.
type outage struct {
	active bool
	since  clock.Instant
	err    error         // what the backend says to requests of this limit; nil if it does not answer at all
	askAt  clock.Instant // when to ask it again
	fair   float64       // tokens per second that are the part of this instance
	isNew  bool          // the instance knows nothing of the limit, and has an even share

	bucket localBucket  // decides, or:
	window *localWindow // of a window of which the instance has a part; else nil
	owed   passLog      // of a window, what passed that was not leased
	count  int          // of the instances, of which the part is one

	// Of a window, what this instance had used at the last answer and what the fleet had left.
	used, left  float64
	isLeftKnown bool

	// until is, after the outage, up to when no more passes than what decided in it lets pass: the
	// other instances may not have paid yet.
	until clock.Instant
}

// unlimited is how many tokens [fleet.OutageOpen] lets pass between two looks at a budget, and
// unlimitedRate how many per second.
const (
	unlimited     = 1 << 26
	unlimitedRate = 1e12
)

// use notes that tokens passed that were not leased.
func (o *outage) use(tokens int64) {
	if o.active {
		o.bucket.level -= float64(tokens)
		o.owed.add(tokens)
	}
}

// returnTime is within what time after an outage all instances have paid.
const returnTime = 2 * maxProbeWait

// end ends the outage. What decided in it still bounds what passes, for a while.
func (o *outage) end(now clock.Instant) {
	*o = outage{window: o.window, bucket: o.bucket, until: now.Add(returnTime)}
	if o.window == nil && (o.bucket.rate == 0 || o.bucket.isUnlimited()) {
		*o = outage{}
	}
}

// isBounding says whether what decided in an outage that is over still bounds what passes.
func (o *outage) isBounding() bool { return o.until != 0 }

// advance brings the outage up to now, after some time.
func (o *outage) advance(now clock.Instant, elapsed time.Duration, passes *passLog) {
	if o.isBounding() && o.until <= now {
		*o = outage{}
	}
	o.bucket.flow(elapsed)
	o.owed.advance(now)
	if o.window != nil {
		o.window.renew(passes)
	}
}

// tokens is how many may pass now.
func (o *outage) tokens(passes *passLog) int64 {
	if o.window != nil {
		return o.window.remaining(passes)
	}
	return o.bucket.tokens()
}

// passes returns how many tokens per second may pass: infinite if all.
func (o *outage) passes(terms *fleet.Terms) float64 {
	if o.window != nil {
		return o.window.part / terms.Window.Seconds()
	}
	return o.bucket.passes()
}

// next returns when there is a token, 0 if that is not known.
func (o *outage) next(now clock.Instant, passes *passLog) clock.Instant {
	switch {
	case o.window == nil:
		return o.bucket.next(now)
	case o.window.part == 0:
		return 0
	case o.window.remaining(passes) > 0:
		return now
	}
	return max(now, passes.next())
}

// decideBy sets what decides, of a limit with such terms. count is the number of instances, 0 if
// it is not known. carry is from 0 to 1, see [newLocalWindow].
func (o *outage) decideBy(onOutage fleet.OnOutage, terms *fleet.Terms, count int, passes *passLog, carry float64) {
	isPart := onOutage == fleet.OutageLast || onOutage == fleet.OutageShare
	if onOutage == fleet.OutageShare || o.isNew {
		o.fair = 0
		if onOutage == fleet.OutageOpen {
			count = max(1, count)
		}
		if count > 0 {
			o.fair = terms.PerSecond() / float64(count)
		}
	}
	o.count, o.window, o.bucket = count, nil, fallback(onOutage, terms, o.fair)
	if isPart && !passes.isOff() && terms.Limit > 0 {
		part := min(o.fair*terms.Window.Seconds(), terms.Limit)
		if onOutage == fleet.OutageLast && count > 0 { // nothing may have passed, and calls come now
			part = max(part, leastPart*terms.Limit/float64(count))
		}
		first := part
		if o.isLeftKnown {
			first = o.used + o.left*part/terms.Limit
			o.isLeftKnown = false // it is of the present window
		}
		o.window = newLocalWindow(part, first, carry, passes)
	}
}

// leastPart is what an instance may use of a window of which it has used nothing, of an even
// share.
const leastPart = 0.05

// wants returns how many tokens to ask for, to see whether the store grants some again.
func (o *outage) wants(now clock.Instant) int64 {
	if o.err != nil && o.askAt <= now {
		return 1
	}
	return 0
}

// fallback returns the bucket that decides in an outage, of a limit of which so many tokens
// per second are the part of this instance.
func fallback(onOutage fleet.OnOutage, terms *fleet.Terms, fair float64) localBucket {
	switch {
	case terms.Limit == 0:
		return localBucket{}
	case onOutage == fleet.OutageOpen:
		return unlimitedBucket()
	case onOutage == fleet.OutageClosed:
		return localBucket{}
	case fair == 0:
		return localBucket{}
	default:
		return newLocalBucket(min(fair, terms.PerSecond()))
	}
}

// sharers is by how many instances a limit is divided in an outage, 0 if that is not known. Of a
// limit of which this instance knows nothing, that is the number of instances that the program
// expects, or that were known when the whole backend failed.
func (m *Member) sharers(o *outage, onOutage fleet.OnOutage) int {
	if o.isNew && onOutage != fleet.OutageShare && m.config.Instances == 0 && !m.connection.out {
		return 0
	}
	return m.count
}

// recount goes over to another number of instances.
func (o *outage) recount(onOutage fleet.OnOutage, terms *fleet.Terms, count int, passes *passLog) {
	if count == o.count || onOutage != fleet.OutageShare && !o.isNew {
		return
	}
	level, carry := o.bucket.level, 0.0
	if o.window != nil {
		carry = o.window.carry
	}
	o.decideBy(onOutage, terms, count, passes, carry)
	o.bucket.level = min(level, o.bucket.most)
}

// chargeable is how much of what passed in the outage still matters, of a window: what passed in
// it, in the present one of so many buckets and in those before that one, the latest first. What
// [fleet.OutageOpen] let pass beyond the part of this instance is forgiven, or nothing would pass for a
// window.
func (o *outage) chargeable(now clock.Instant, onOutage fleet.OnOutage, terms *fleet.Terms, buckets int) (present int64, before []int64) {
	o.owed.advance(now)
	counts := o.owed.counts
	if onOutage == fleet.OutageOpen {
		o.forgive(now)
	}
	present = min(counts[0], int64(terms.Limit))
	left := int64(terms.Limit) - present
	perPart := (max(1, buckets) + len(counts) - 1) / len(counts) // more than one of very many buckets
	begun := int(max(0, now.Sub(o.owed.begin)) / (o.owed.length / time.Duration(perPart)))
	for i, count := range counts[1:] {
		if count = min(count, left); count > 0 {
			before = append(before, make([]int64, begun+i*perPart+1-len(before))...)
			before[len(before)-1] = count
			left -= count
		}
	}
	return present, before
}

// forgive scales down what passed in a window to the part of this instance; of a window without
// parts, to that of the time since it began.
func (o *outage) forgive(now clock.Instant) {
	lasted := o.owed.length * time.Duration(len(o.owed.counts))
	if len(o.owed.counts) == 1 {
		lasted = min(lasted, now.Sub(o.owed.begin))
	}
	passed, most := float64(o.owed.sum()), o.fair*lasted.Seconds()
	for i, count := range o.owed.counts {
		o.owed.counts[i] = min(count, int64(float64(count)*most/max(1, passed)))
	}
}

// chargeableOfBucket is how much of what passed in the outage still matters, of a bucket from
// which tokens are granted up to a time ahead: what passed in the time in which it fills, and what
// was more than the part of this instance, unless [fleet.OutageOpen] let it pass.
func (o *outage) chargeableOfBucket(now clock.Instant, passed int64, terms *fleet.Terms, ahead time.Duration) int64 {
	rate := terms.PerSecond()
	if rate == 0 {
		return 0
	}
	lasted, fair, owed := now.Sub(o.since).Seconds(), o.fair, float64(passed)
	more := 0.0
	if !o.bucket.isUnlimited() {
		fair = max(fair, o.bucket.rate)
		more = max(0, owed-fair*lasted)
	}
	recent := fair * min(lasted, terms.Burst/rate)
	return int64(min(owed, recent+more, terms.Burst+rate*ahead.Seconds()))
}

func sum(counts []int64) (tokens int64) {
	for _, count := range counts {
		tokens += count
	}
	return tokens
}

// beginOutage has the budget decide by itself. err is what the store says to its requests,
// nil if the backend does not answer at all.
func (b *Budget) beginOutage(now clock.Instant, err error) {
	b.count(now)
	if b.outage.active {
		b.outage.err = err
		return
	}
	b.outage = outage{active: true, since: now, err: err, owed: b.passes.empty()}
	b.outage.owed.add(b.owed)
	b.outage.fair, b.outage.isNew = b.fair(now)
	b.outage.used, b.outage.left, b.outage.isLeftKnown = b.portion.present(&b.passes)
	b.outage.decideBy(b.onOutage, &b.terms, b.member.sharers(&b.outage, b.onOutage), &b.passes, b.member.random.Float64())
	b.isFull, b.retryAt = false, 0
	b.member.queue.set(b, now)
}

// fair is how many tokens per second are the part of this instance, and whether nothing is known
// of that.
func (b *Budget) fair(now clock.Instant) (perSecond float64, isNew bool) {
	fraction, isKnown := b.portion.fraction()
	if b.mode == fleet.ModeWindow {
		return fraction * b.fleetRate(), !isKnown
	}
	passed := b.passedOfLate()
	if now.Sub(b.steadyAt) < 2*b.member.config.Timeout { // nothing was granted since
		passed = max(passed, b.steady)
	}
	if b.isFull { // calls come at that rate on average, and more often at times
		const surplus = 1.2
		passed *= surplus
	} else { // tokens are used as soon as they come, and the average is highest then
		passed -= passed / (4 * b.requestRate() * b.rateMemory().Seconds())
		passed = evened(passed, b.even(), b.rateMemory())
	}
	return passed, !isKnown && b.group == nil
}

// evened returns a rate that was measured over a memory, as far as its difference from an even share is
// not by chance: in an outage it would stay. All instances together pass the same.
func evened(rate, even float64, memory time.Duration) float64 {
	difference := rate - even
	chance := even / memory.Seconds() // twice the variance of a rate, of tokens that come at random
	return even + difference*max(0, 1-chance/max(chance, difference*difference))
}

// isAsleep says whether nothing happens to the budget until a call wakes it, which may pass what
// it could pass in an outage as well.
func (b *Budget) isAsleep() bool {
	if b.outage.active || b.onOutage != fleet.OutageLast && b.onOutage != fleet.OutageShare {
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

// backIsUp notes that the store answers the requests of the budget. What passed meanwhile is paid
// as far as it still matters.
func (b *Budget) backIsUp(now clock.Instant) {
	if !b.outage.active {
		return
	}
	b.count(now)
	if b.outage.err != nil {
		b.outage.err = nil
		b.member.noteAccepted()
		b.group.accepted()
	}
	b.retryAt = 0 // before all that was sent meanwhile has come back
	b.member.queue.set(b, now)
	if b.mode == fleet.ModeWindow {
		present, before := b.outage.chargeable(now, b.onOutage, &b.terms, b.terms.Buckets)
		b.owedBefore = before
		b.owes(present + sum(before))
		b.outage.end(now)
		return
	}
	b.owes(b.outage.chargeableOfBucket(now, b.owed, &b.terms, b.queue()))
	b.outage = outage{}
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
	more := sum(b.owedBefore) - b.owed
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
	case b.outage.active:
		b.outage.recount(b.onOutage, &b.terms, b.member.sharers(&b.outage, b.onOutage), &b.passes)
		return b.owed + b.owedSent + b.allowedInOutage(now)
	case b.mode == fleet.ModeWindow && b.outage.isBounding():
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
	case b.outage.window == nil:
	case !b.member.running: // nobody would look again when a window has ended
		return 0
	default:
		return max(0, b.outage.tokens(&b.passes)-b.held.tokens())
	}
	return max(b.outage.tokens(&b.passes), b.idleDebt(now))
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
	rate := b.outage.passes(&b.terms)
	if b.outage.window != nil || b.terms.Limit == 0 || b.onOutage == fleet.OutageClosed || b.member.count == 0 {
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
		mayNot = b.onOutage == fleet.OutageClosed || b.member.count == 0
	}
	if mayNot {
		return 0
	}
	share := b.even() * now.Sub(b.lastPass).Seconds()
	return int64(min(share, float64(max(1, b.large)), float64(b.most.Load())))
}
