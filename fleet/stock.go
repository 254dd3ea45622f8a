package fleet

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// pending is a request under way.
type pending struct {
	budget *Budget
	sent   clock.Instant
	want   int64
	owed   int64
	ahead  bool // asks for tokens of the next bucket of a window
	tells  bool // the store what was seen
	failed bool
}

// fleetRate is the limit of the fleet in tokens per second.
func (b *Budget) fleetRate() float64 { return b.terms.PerSecond() }

// even is the even share of this instance, in tokens per second.
func (b *Budget) even() float64 { return b.fleetRate() / float64(max(1, b.member.count)) }

// evenTime is the time in which each instance gets one token, if all get as many.
func (b *Budget) evenTime() time.Duration { return seconds(1 / b.even()) }

// idleTime is after how long without a pass the largest call may pass on debt.
func (b *Budget) idleTime() time.Duration { return seconds(float64(max(1, b.large)) / b.even()) }

func (b *Budget) demandMemory() time.Duration {
	return min(max(200*time.Millisecond, b.evenTime()), 2*time.Second)
}

func (b *Budget) rateMemory() time.Duration { return rateMemoryOf(&b.terms, b.member.count) }

// rateMemoryOf is the memory of averages of what passes: that of four tokens of an instance.
func rateMemoryOf(terms *Terms, count int) time.Duration {
	return min(max(time.Second, seconds(4*float64(max(1, count))/terms.PerSecond())), 5*time.Minute)
}

// life is how long leased tokens may be used.
func (b *Budget) life() time.Duration {
	return min(max(minLife, 2*b.evenTime(), 2*(b.member.lead()+period)), maxLife)
}

// queue is how far ahead tokens may be granted for later.
func (b *Budget) queue() time.Duration {
	return min(max(100*time.Millisecond, 3*b.evenTime()/2), maxLife)
}

func (b *Budget) bucketLength() time.Duration {
	return b.terms.Window / time.Duration(max(1, b.terms.Buckets))
}

// requestRate is how many requests may be made per second: of short buckets, a little more
// than one for each.
func (b *Budget) requestRate() float64 {
	if b.mode == ModeWindow {
		return max(requestsPerSecond, 1.15/b.bucketLength().Seconds())
	}
	return requestsPerSecond
}

// need is how many tokens calls will want in a time, but for one time in a thousand.
func (b *Budget) need(t time.Duration) float64 {
	mean := b.demand.perSecond() * max(0, t).Seconds()
	return mean + b.safety()*math.Sqrt(mean)
}

// safety is how many standard deviations of demand there should be tokens for. What is kept
// of a bucket of a window is missing elsewhere until the bucket has ended: less of small ones.
func (b *Budget) safety() float64 {
	if b.mode == ModeLease {
		return 3.3
	}
	const most = 3.3 // one time in a thousand is not enough
	even, demand, rate := b.even(), b.demand.perSecond(), b.fleetRate()
	switch inBucket := even * min(b.bucketLength(), 10*period).Seconds(); {
	case demand > rate:
		return 1
	case demand > 1.5*even: // others want the rest, probably, unless this one wants most of all
		return min(max(1, 4*demand/rate), most)
	default:
		return min(max(1, inBucket/3), 1+(most-1)*min(1, 1.25*demand/max(even, 1e-9)))
	}
}

// target is how many tokens there should be for the next time. While the store does not
// grant all that is wanted, it is a little more than passed of late, or the even share.
func (b *Budget) target(t time.Duration) int64 {
	lead := min(t, b.member.lead())
	want := b.need(lead) + b.demand.perSecond()*(t-lead).Seconds()
	if b.mode == ModeWindow && t <= b.bucketLength() {
		want = b.need(t)
	}
	usable := b.life()
	if b.mode == ModeWindow {
		usable = min(usable, b.bucketLength())
	}
	if want < 1 && b.demand.perSecond()*usable.Seconds() > 0.3 {
		want = 1
	}
	if !b.isFull {
		growth := 1.25
		if b.mode == ModeWindow {
			growth = 2
		}
		want = min(want, max(b.even(), growth*b.passed.perSecond())*t.Seconds()+1)
	}
	return min(int64(want+0.5), b.most.Load(), maxTokens/4)
}

// spare is how many tokens may lie there before some are handed back. When tokens of the next
// bucket of a window are asked for, those that the present one does not need any more go back
// with the same request.
func (b *Budget) spare(now clock.Instant) int64 {
	if b.outage.active {
		return maxTokens
	}
	if b.isPrefetching(now) {
		if left := b.bucketEnd.Sub(now); left > debtTime {
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
		if b.mode == ModeLease || ahead == (b.later[i].from.Add(tick) >= b.bucketEnd) {
			tokens += b.later[i].tokens
		}
	}
	for _, p := range b.pending {
		if now.Sub(p.sent) < 4*b.member.roundTrip()+2*tick && (b.mode == ModeLease || p.ahead == ahead) {
			tokens += p.want
		}
	}
	return tokens
}

// want returns how many tokens to ask for now; of a window, of the next bucket if ahead is
// not 0, which is then how far ahead that is.
func (b *Budget) want(now clock.Instant) (want int64, ahead time.Duration) {
	if b.released || b.most.Load() == 0 {
		return 0, 0
	}
	lead := b.member.lead()
	time := lead + period
	prefetch := b.prefetchAt(now)
	switch {
	case b.isPrefetching(now) && b.retryAt <= b.bucketEnd.Add(b.bucketLength()):
		length := b.bucketLength()
		want = b.target(min(time, length)) - b.coming(now, true)
		return max(0, want), min(length, b.bucketEnd.Sub(now)+b.member.roundTrip()+tick)
	case b.retryAt > now || b.isPrefetching(now):
		return 0, 0
	case prefetch != 0:
		time = min(time, b.bucketEnd.Sub(now))
		ahead = min(tick/2, b.bucketLength()/4)
	}
	stock := b.held.tokens() + b.coming(now, false)
	target := b.target(time)
	if large := b.largeNow(); large > stock {
		return max(target, large) - stock, ahead
	}
	if float64(stock) >= b.need(min(time, lead)) && (stock > 0 || target == 0) {
		return 0, 0
	}
	return max(0, target-stock), ahead
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

// prefetchAt returns from when on tokens of the next bucket of a window are asked for: just in
// time, so that what is left of the present one can go back with the same request. Who does
// not get all that it wants asks when the bucket has begun: then what others have handed back
// is there. It is 0 if it is not known when that is.
func (b *Budget) prefetchAt(now clock.Instant) clock.Instant {
	if b.mode != ModeWindow || b.bucketEnd == 0 {
		return 0
	}
	if late := now.Sub(b.bucketEnd); late >= 0 {
		length := b.bucketLength()
		b.bucketEnd = b.bucketEnd.Add((late/length + 1) * length)
	}
	if b.asksLate() {
		begun := b.bucketEnd.Add(b.member.lead() - tick - b.member.roundTrip() + b.jitter)
		if earlier := begun.Add(-b.bucketLength()); earlier > now {
			return earlier
		}
		return begun
	}
	return b.bucketEnd.Add(-min(b.member.lead()-tick+b.jitter, b.bucketLength()/2))
}

// plan returns the request that is to be made now, and what is to become of it; nil if none.
func (b *Budget) plan(now clock.Instant) (Request, *pending) {
	want, ahead := b.want(now)
	least := 1.0
	switch {
	case b.outage.active:
		if want = b.outage.wants(now); want == 0 && !b.outage.settles() {
			return Request{}, nil
		}
	case want == 0, b.mode == ModeWindow && !b.isPrefetching(now) && b.hasAsked(now):
		least = 2 // that may wait, other than the first request of a bucket
	}
	if want == 0 && b.owed > 0 && !b.outage.active && !b.released && b.retryAt <= now && b.isRare() {
		want = 1 // or nobody would know that nothing is left for more debt
	}
	pays := b.owed > 0 || len(b.back) > 0 || b.tells
	if b.tells {
		least = 0
	}
	if want == 0 && !pays || b.requests < least || len(b.pending) >= maxPending || !b.maySend() {
		return Request{}, nil
	}
	b.requests--
	request, p := b.pay(now, want)
	request.Ahead, p.ahead = ahead, b.isPrefetching(now)
	if p.ahead {
		b.asked = b.bucketEnd
	} else if want > 0 {
		b.asked = now
	}
	return request, p
}

// maySend says whether a request can be sent now.
func (b *Budget) maySend() bool {
	if b.group != nil {
		return b.member.maySendMore()
	}
	return b.member.maySend()
}

// isRare says whether calls are so rare that no tokens are leased ahead of them.
func (b *Budget) isRare() bool { return b.target(b.member.lead()+period) == 0 }

// pay returns a request that hands back what is to be handed back of one origin, pays what is
// owed, and asks for tokens.
func (b *Budget) pay(now clock.Instant, want int64) (Request, *pending) {
	back := b.back.take(now)
	request := Request{
		Operation: LeaseBucket, Terms: b.terms,
		Want: want, Owed: b.owed, Back: back.tokens, BackTo: back.origin.bucket,
		Quantum: b.quantum(want), Queue: b.queue(), Keep: maxLife,
	}
	if b.tells {
		request.Seen = b.seen
	}
	if b.mode == ModeWindow {
		request.Operation = LeaseWindow
	} else if need := float64(b.largeNow()) - b.terms.Burst; need > 0 {
		request.Queue = max(request.Queue, min(maxLife, seconds(need/b.fleetRate())))
	}
	p := &pending{budget: b, sent: now, want: want, owed: b.owed, tells: b.tells}
	b.owed, b.owedSent = 0, b.owedSent+b.owed
	b.pending = append(b.pending, p)
	return request, p
}

// quantum is the least number of tokens that is worth a grant.
func (b *Budget) quantum(want int64) int64 {
	least := int64(1)
	if b.mode == ModeLease {
		share := max(b.even(), b.passed.perSecond())
		least = int64(math.Ceil(share * b.queue().Seconds() / 2))
	}
	return min(want, max(1, least, b.largeNow()))
}

// answered takes a reply to the request.
func (p *pending) answered(now clock.Instant, reply *Reply) {
	b := p.budget
	b.count(now)
	b.lost = 0
	if reply.Err != nil {
		p.unanswered(now)
		b.refusedBy(now, reply.Err)
		return
	}
	b.learn(reply.State, p.tells)
	b.steady, b.steadyAt = b.passed, now
	paid := p.owed
	if p.failed { // it was taken for lost, and what it paid is owed once more
		paid = min(paid, b.owed)
		b.owed -= paid
	} else {
		b.owedSent -= paid
		b.remove(p)
	}
	tokens := paid + b.grant(now, p, reply)
	b.backIsUp(now)
	b.write(tokens, b.end(now), false)
	b.publish(now, tokens > 0)
	b.member.agenda.set(b, min(b.due, nextTick(now+1)))
}

// grant notes what the reply grants or denies, and returns the tokens that may be used now.
func (b *Budget) grant(now clock.Instant, p *pending, reply *Reply) int64 {
	if p.want > 0 {
		b.fullWants++
		isAll := p.want >= b.most.Load() && b.demand.perSecond() > b.fleetRate() // and not enough
		if reply.Granted < p.want || isAll || b.mode == ModeLease && reply.Delay > 0 {
			b.fullWants = 0
		}
		b.isFull = b.fullWants >= 3 || b.fullWants > 0 && b.isRare()
		b.jitter = time.Duration(b.member.random.Int64N(int64(4 * time.Millisecond)))
		b.retryAt = 0
		if reply.Granted == 0 {
			b.retryAt = retryAt(now, reply.Retry)
		}
	}
	if reply.Granted <= 0 {
		return 0
	}
	b.granted += average(float64(reply.Granted) / b.rateMemory().Seconds())
	b.group.add(now, 0, 0, reply.Granted)
	l := lease{
		from: now.Add(reply.Delay), end: p.sent.Add(reply.Delay + b.life()),
		tokens: reply.Granted, origin: origin{bucket: reply.Bucket, until: never},
	}
	if b.mode == ModeWindow {
		end := p.sent.Add(reply.Valid)
		l.origin.until = end.Add(b.terms.Window - b.bucketLength())
		b.bucketEnd = end
		if reply.Delay > 0 {
			b.bucketEnd = end.Add(-b.bucketLength())
		}
		l.end = min(l.end, end)
	}
	l.end = wholeUnit(l.end)
	switch {
	case l.end <= max(now, l.from):
		b.handBack(l.origin, l.tokens)
		return 0
	case l.from <= now:
		return b.hold(l)
	default:
		b.later.add(l)
		return 0
	}
}

// retryAt is when a denial that came at an instant ends.
func retryAt(now clock.Instant, retry time.Duration) clock.Instant {
	if retry > never.Sub(now) {
		return never
	}
	return now.Add(max(retry, tick))
}

// unanswered ends a request that has no answer. Tokens that were granted are lost; what was owed
// is owed once more, so that nothing is used that nobody pays for.
func (p *pending) unanswered(now clock.Instant) {
	if b := p.budget; !p.failed {
		p.failed = true
		b.tells = b.seen != ""
		b.owedSent -= p.owed
		b.owed += p.owed
		b.remove(p)
		b.member.agenda.set(b, min(b.due, nextTick(now)))
		if b.lost++; b.lost >= maxLost && !b.member.connection.out {
			b.refusedBy(now, ErrUnavailable)
		}
	}
}

// maxLost is how many requests of a limit in a row may have no answer, while others have one,
// before the limit goes on without the backend.
const maxLost = 3

func (b *Budget) remove(p *pending) {
	b.pending = slices.DeleteFunc(b.pending, func(other *pending) bool { return other == p })
}
