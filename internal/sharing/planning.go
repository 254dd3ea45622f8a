package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// fleetRate is the limit of the fleet in tokens per second.
func (b *Budget) fleetRate() float64 { return b.terms.PerSecond() }

// even is the even share of this instance, in tokens per second.
func (b *Budget) even() float64 { return b.fleetRate() / float64(max(1, b.member.count)) }

// evenTime is the time in which each instance gets one token, if all get as many.
func (b *Budget) evenTime() time.Duration { return usage.Seconds(1 / b.even()) }

// idleTime is after how long without a pass the largest call may pass on debt.
func (b *Budget) idleTime() time.Duration { return usage.Seconds(float64(max(1, b.large)) / b.even()) }

func (b *Budget) demandMemory() time.Duration {
	return min(max(200*time.Millisecond, b.evenTime()), 2*time.Second)
}

func (b *Budget) rateMemory() time.Duration { return usage.RateMemory(&b.terms, b.member.count) }

// life is how long leased tokens may be used.
func (b *Budget) life() time.Duration {
	return min(max(minLife, 2*b.evenTime(), 2*(b.member.lead()+period)), maxLife)
}

// queue is how far ahead tokens may be granted for later.
func (b *Budget) queue() time.Duration {
	return min(max(100*time.Millisecond, 3*b.evenTime()/2), maxLife)
}

// usable is how long the tokens of a bucket of a window may be used at most: when exactly it
// begins and ends is not known.
func (b *Budget) usable() time.Duration {
	return max(b.bucketLength()-b.member.roundTrip(), b.bucketLength()/4)
}

func (b *Budget) bucketLength() time.Duration {
	return b.terms.Window / time.Duration(max(1, b.terms.Buckets))
}

// requestRate is how many requests may be made per second: of short buckets, a little more
// than one for each.
func (b *Budget) requestRate() float64 {
	if b.mode == fleet.ModeWindow {
		return max(requestsPerSecond, 1.15/b.bucketLength().Seconds())
	}
	return requestsPerSecond
}

// demanded is how many tokens per second calls ask for.
func (b *Budget) demanded() float64 {
	return b.recent(b.demand, b.demandMemory(), 100*time.Millisecond)
}

// passedOfLate is how many tokens per second passed. The first burst of calls counts for no
// more than its part of most of a second.
func (b *Budget) passedOfLate() float64 {
	return b.recent(b.passed, b.rateMemory(), 700*time.Millisecond)
}

// recent is an average, after a quiet time that of the time since then, if that is longer than
// least and more than a few calls have come.
func (b *Budget) recent(a usage.Average, memory, least time.Duration) float64 {
	const few = 3
	rate := a.PerSecond()
	if rate*memory.Seconds() < few {
		return rate
	}
	busy := max(b.looked.Sub(b.busyFrom)+tick, least)
	return rate / -math.Expm1(-busy.Seconds()/memory.Seconds())
}

// need is how many tokens calls will want in a time, but for one time in a thousand.
func (b *Budget) need(t time.Duration) float64 { return b.needOf(b.demanded(), t) }

// needOf is need, of so many calls per second. What is kept of a bucket of a window and not
// used is missing elsewhere until it is handed back: no more than this instance's share of
// what the fleet does not use, and less if that is less than a bucket has on average.
func (b *Budget) needOf(rate float64, t time.Duration) float64 {
	const deviations = 3.3
	mean := rate * max(0, t).Seconds()
	safety := deviations * math.Sqrt(mean)
	if b.mode == fleet.ModeWindow && b.isKnown {
		spare := b.free * min(1, b.free*float64(b.terms.Buckets)/b.terms.Limit)
		safety = min(safety, spare/float64(max(1, b.member.count)))
	}
	return mean + safety
}

// target is how many tokens there should be for the next time. While the store does not
// grant all that is wanted, it is a little more than passed of late, or the even share.
func (b *Budget) target(t time.Duration) int64 {
	lead := min(t, b.member.lead())
	want := b.need(lead) + b.demanded()*(t-lead).Seconds()
	if b.mode == fleet.ModeWindow && t <= b.bucketLength() {
		want = b.need(t)
	}
	usable := b.life()
	if b.mode == fleet.ModeWindow {
		usable = min(usable, b.bucketLength())
	}
	if want < 1 && b.demanded()*usable.Seconds() > 0.3 {
		want = 1
	}
	if c := b.ceiling(); c > 0 {
		most := c * t.Seconds()
		if b.mode == fleet.ModeLease {
			most++
		}
		want = min(want, max(1, most))
	}
	return min(int64(want+0.5), b.most.Load(), packed.MaxTokens/4)
}

// ceiling is how many tokens per second are asked for at most, 0 if that is not limited.
func (b *Budget) ceiling() float64 {
	share, growth := b.even(), 1.25
	switch {
	case b.mode == fleet.ModeWindow && b.terms.Buckets > 1:
		share = max(share, b.bucketTokens/float64(max(1, b.member.count))/b.bucketLength().Seconds())
		if b.isAheadOfOthers() {
			growth = 1
		}
		growth = max(growth, b.bucketTokens/max(1, b.bucketTokens-b.free))
	case b.isFull:
		return 0
	case b.mode == fleet.ModeLease || b.terms.Buckets == 1:
		// Not more than what passed without end: whoever has more than others would ask for more.
		const chance = 1.5
		return max(share, b.spareRate, min(growth*b.passed.PerSecond(), chance*share))
	}
	return max(share, growth*b.passed.PerSecond())
}

// explore raises spareRate while a bucket has all that is asked for, so that an instance whose
// demand has grown gets what the others leave within a few requests. What passed follows
// within a second or more. The higher it is, the less it rises and the more it falls, so that
// instances with the same demand come to the same rate.
func (b *Budget) explore(hasAll bool) {
	const factor, part, down = 1.5, 0.25, 0.9
	if hasAll {
		rate := max(b.spareRate, b.even())
		b.spareRate = min(factor*rate, rate+part*(b.fleetRate()-rate))
	} else {
		b.spareRate *= down
	}
}

// spare is how many tokens may lie there before some are handed back. When tokens of the next
// bucket of a window are asked for, those that the present one does not need any more go back
// with the same request.
func (b *Budget) spare(now clock.Instant) int64 {
	if b.outage.Active {
		return packed.MaxTokens
	}
	if b.isPrefetching(now) {
		if left := b.held.firstEnd().Sub(now); left > minDebtTime {
			return int64(b.need(left) + 0.5)
		}
		return 0
	}
	return 2*b.target(b.member.lead()+period) + b.large + 2
}

// largeNow is the number of tokens of the largest call, if it was refused just now.
func (b *Budget) largeNow() int64 {
	if b.largeAt == b.looked || b.looked.Sub(b.largeAt) < period {
		return b.large
	}
	return 0
}

// coming is how many tokens are granted for later, or asked for; of a window, those of the
// next bucket or of the present one. What has no answer for long is lost, probably.
func (b *Budget) coming(now clock.Instant, ahead bool) (tokens int64) {
	for i := range b.later {
		if b.mode == fleet.ModeLease || ahead == (b.later[i].from.Add(tick) >= b.bucketEnd) {
			tokens += b.later[i].tokens
		}
	}
	for _, p := range b.pending {
		if now.Sub(p.sent) < 4*b.member.roundTrip()+2*tick && (b.mode == fleet.ModeLease || p.ahead == ahead) {
			tokens += p.want
		}
	}
	return tokens
}

// want returns how many tokens to ask for now; of a window, of the next bucket if ahead is
// not 0, which is then how far ahead that is.
func (b *Budget) want(now clock.Instant) (want int64, ahead time.Duration) {
	if b.released.Load() || b.most.Load() == 0 {
		return 0, 0
	}
	if want, ahead = b.wantWithoutBound(now); b.outage.IsBounding() {
		want = min(want, b.bounded(now))
	}
	if b.crowd.Is(now) {
		want = min(want, b.leftOfPart(now))
	}
	return want, ahead
}

// bounded is how many more tokens may be leased or passed while others may not have paid for what
// passed in an outage.
func (b *Budget) bounded(now clock.Instant) int64 {
	return max(0, b.outage.Tokens(&b.passes)-b.held.tokens()-b.coming(now, false)-b.coming(now, true))
}

func (b *Budget) wantWithoutBound(now clock.Instant) (want int64, ahead time.Duration) {
	lead := b.member.lead()
	time := lead + period
	prefetch := b.prefetchAt(now)
	switch {
	case b.isPrefetching(now) && b.retryAt <= b.bucketEnd.Add(b.bucketLength()):
		length := b.bucketLength()
		want = b.target(min(time, b.usable())) - b.coming(now, true)
		return max(0, want), min(length, b.bucketEnd.Sub(now)+b.member.roundTrip()+tick)
	case b.retryAt > now || b.isPrefetching(now):
		return 0, 0
	case prefetch != 0:
		time = min(time, b.bucketEnd.Sub(now))
		ahead = min(tick/2, b.bucketLength()/4)
	}
	available := b.held.tokens() + b.coming(now, false)
	target := b.target(time)
	// A token of a bucket that has ended before the next call comes would be missed elsewhere.
	isRare := b.mode == fleet.ModeWindow && target == 0
	if large := b.largeNow(); large > available && (large > 1 || !isRare) {
		return max(target, large) - available, ahead
	}
	if float64(available) >= b.need(min(time, lead)) && (available > 0 || target == 0) {
		return 0, 0
	}
	return max(0, target-available), ahead
}

// hasAsked says whether tokens of the present bucket of a window were asked for since it
// began.
func (b *Budget) hasAsked(now clock.Instant) bool {
	return b.prefetchAt(now) != 0 && b.asked >= b.bucketEnd.Add(-b.bucketLength())
}

// isPrefetching says whether it is time to ask for tokens of the next bucket of a window.
func (b *Budget) isPrefetching(now clock.Instant) bool {
	prefetch := b.prefetchAt(now)
	return prefetch != 0 && prefetch <= now && !b.asksLate()
}

// asksLate says whether tokens of a bucket are asked for when it has begun.
func (b *Budget) asksLate() bool {
	return !b.isFull && b.member.lead()-tick < b.bucketLength()/8
}

// isAheadOfOthers says whether the window has less than instances ask for, and more passed here of
// late than others may have had: then this one asks for no more, and the others catch up. It is not
// said of one that has most of the demand.
func (b *Budget) isAheadOfOthers() bool {
	const most = 2.5
	passed, even := b.passed.PerSecond(), b.even()
	return b.asksLate() && b.looked.Sub(b.shortAt) < b.terms.Window && even < passed && passed < most*even
}

// deference is how much later than others an instance asks for tokens of a bucket that has begun
// because more than an even share passed there of late: the others find theirs, and it finds what
// they leave, however much that is.
func (b *Budget) deference() time.Duration {
	const sharpness = 20
	longest := min(6*time.Millisecond, b.bucketLength()/16)
	passed, even := b.passed.PerSecond(), b.even()
	if passed <= even {
		return 0
	}
	return time.Duration(min(1, sharpness*(passed/even-1)) * float64(longest))
}

// prefetchAt returns from when on tokens of the next bucket of a window are asked for: just in
// time, so that what is left of the present one can go back with the same request. Who does
// not get all that it wants asks when the bucket has begun: then what others have handed back
// is there. It is 0 if it is not known when that is.
func (b *Budget) prefetchAt(now clock.Instant) clock.Instant {
	if b.mode != fleet.ModeWindow || b.bucketEnd == 0 {
		return 0
	}
	if late := now.Sub(b.bucketEnd); late >= 0 {
		length := b.bucketLength()
		b.bucketEnd = b.bucketEnd.Add((late/length + 1) * length)
	}
	if b.asksLate() {
		begun := b.bucketEnd.Add(b.member.lead() - tick - b.member.roundTrip() + b.jitter + b.deference())
		if earlier := begun.Add(-b.bucketLength()); earlier > now {
			return earlier
		}
		return begun
	}
	return b.bucketEnd.Add(-min(b.member.lead()-tick+b.jitter, b.bucketLength()/2))
}
