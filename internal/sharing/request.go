package sharing

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// pending is a request under way.
type pending struct {
	budget *Budget
	sent   clock.Instant
	want   int64
	limit  float64 // by which it asks
	owed   int64
	before []int64 // of owed, in the buckets before
	ahead  bool    // asks for tokens of the next bucket of a window
	tells  bool    // the store what was seen
	failed bool
}

// plan returns the request that is to be made now, and what is to become of it; nil if none.
func (b *Budget) plan(now clock.Instant) (fleet.Request, *pending) {
	want, ahead := b.want(now)
	least := 1.0
	switch {
	case b.outage.Active:
		return b.probe(now)
	case want == 0, b.mode == fleet.ModeWindow && !b.isPrefetching(now) && b.hasAsked(now):
		least = 2 // that may wait, other than the first request of a bucket
	}
	if want == 0 && b.owed > 0 && !b.outage.Active && !b.released.Load() && b.retryAt <= now && b.isRare() {
		want = 1 // or nobody would know that nothing is left for more debt
	}
	pays := b.owed > 0 || len(b.back) > 0 || b.tells
	if b.tells {
		least = 0
	}
	if want == 0 && !pays || b.requests < least || len(b.pending) >= maxPending || !b.maySend() {
		return fleet.Request{}, nil
	}
	b.requests--
	request, p := b.pay(now, want)
	request.Ahead, p.ahead = ahead, b.isPrefetching(now)
	if p.ahead {
		b.asked = b.bucketEnd.Add(b.bucketLength() / 2) // each answer tells a little differently when it begins
	} else if want > 0 {
		b.asked = now
	}
	return request, p
}

// probe returns a request that is to be made in an outage, of one token, to see whether the store
// counts again; nil if none. What passed meanwhile is paid when it does, and no sooner: a store
// that hangs may make all requests that have no answer.
func (b *Budget) probe(now clock.Instant) (fleet.Request, *pending) {
	want := b.outage.Wants(now)
	if want == 0 || b.requests < 1 || len(b.pending) >= maxPending || !b.maySend() {
		return fleet.Request{}, nil
	}
	b.requests--
	b.outage.AskAt = now.Add(b.member.jitter(maxProbeWait))
	p := &pending{budget: b, sent: now, want: want, limit: b.terms.Limit}
	b.pending = append(b.pending, p)
	return b.request(want), p
}

// request returns a request for tokens.
func (b *Budget) request(want int64) fleet.Request {
	return fleet.Request{
		Operation: b.operation(), Terms: b.terms, Want: want,
		Quantum: b.quantum(want), Queue: b.queue(), Keep: maxLife,
	}
}

// maySend says whether a request can be sent now.
func (b *Budget) maySend() bool {
	to := b.member.partitionOf(b.terms.Key)
	if b.group != nil {
		return b.member.maySendMore(to)
	}
	return b.member.maySend(to)
}

// isRare says whether calls are so rare that no tokens are leased ahead of them.
func (b *Budget) isRare() bool { return b.target(b.member.lead()+period) == 0 }

// pay returns a request that hands back what is to be handed back of one origin, pays what is
// owed, and asks for tokens.
func (b *Budget) pay(now clock.Instant, want int64) (fleet.Request, *pending) {
	back := b.back.take(now)
	request := b.request(want)
	request.Terms = b.crowd.Terms(now, b.terms)
	request.Back, request.BackTo = back.tokens, back.origin.bucket
	request.Owed, request.OwedBefore = b.owed-usage.Sum(b.owedBefore), b.owedBefore
	if b.tells {
		request.Seen = b.seen
	}
	if need := float64(b.largeNow()) - b.terms.Burst; need > 0 && b.mode != fleet.ModeWindow {
		request.Queue = max(request.Queue, min(maxLife, usage.Seconds(need/b.fleetRate())))
	}
	p := &pending{budget: b, sent: now, want: want, limit: request.Terms.Limit, owed: b.owed, before: b.owedBefore, tells: b.tells}
	b.owed, b.owedBefore, b.owedSent = 0, nil, b.owedSent+b.owed
	b.pending = append(b.pending, p)
	return request, p
}

func (b *Budget) operation() fleet.Operation {
	if b.mode == fleet.ModeWindow {
		return fleet.LeaseWindow
	}
	return fleet.LeaseBucket
}

// quantum is the least number of tokens that is worth a grant, and what is granted for later. It
// follows what passed only as far as the bucket has it to spare, or those that pass more than
// others would be granted more. With as many requests as may be made, it is the even share; what
// the request pays is part of it.
func (b *Budget) quantum(want int64) int64 {
	least := int64(1)
	if b.mode == fleet.ModeLease {
		share := max(b.even(), min(b.spareRate, b.passed.PerSecond()))
		interval := max(b.queue().Seconds()/2, 1/b.requestRate())
		least = int64(math.Round(share*interval)) - b.owed
	}
	return min(want, max(1, least, b.largeNow()))
}

// answered takes a reply to the request.
func (p *pending) answered(now clock.Instant, reply *fleet.Reply) {
	b := p.budget
	b.count(now)
	b.lost, b.heard = 0, max(b.heard, p.sent)
	if reply.Err != nil {
		p.unanswered(now, reply.Err)
		b.refusedBy(now, reply.Err)
		return
	}
	if reply.Granted > 0 && reply.Delay <= 0 {
		b.beginBucket(reply.Bucket, now)
	}
	b.learn(now, reply.State, p.tells)
	b.steady, b.steadyAt = b.passedOfLate(), now
	paid := p.owed
	if p.failed { // it was taken for lost, and what it paid is owed once more, or paid
		paid = min(paid, b.owed)
		b.oweLess(paid)
		b.handBack(b.last, p.owed-paid)
	} else {
		b.owedSent -= paid
		b.remove(p)
	}
	tokens := paid + b.grant(now, p, reply)
	b.measurePortion(now, reply)
	b.backIsUp(now)
	tokens += b.allow(now) // what is paid is not allowed once more if nothing is left
	b.write(tokens, b.end(now), false)
	b.publish(now, tokens > 0)
	b.member.queue.set(b, min(b.due, nextTick(now+1)))
}

// grant notes what the reply grants or denies, and returns the tokens that may be used now.
func (b *Budget) grant(now clock.Instant, p *pending, reply *fleet.Reply) int64 {
	if p.want > 0 && !p.failed { // what a store that hung has answered late is not so any more
		b.fullWants++
		b.explore(reply.Granted == p.want && reply.Delay == 0)
		isAll := p.want >= b.most.Load() && b.demand.PerSecond() > b.fleetRate() // and not enough
		if reply.Granted < p.want && p.want > 1 {
			b.shortAt = now
		}
		if reply.Granted < p.want || isAll || b.mode == fleet.ModeLease && reply.Delay > 0 {
			b.fullWants = 0
		}
		isEnough := b.mode == fleet.ModeLease || b.terms.Buckets == 1 || b.demanded() <= b.ceiling()
		b.isFull = b.fullWants >= 3 && isEnough || b.fullWants > 0 && b.isRare()
		b.jitter = time.Duration(b.member.random.Int64N(int64(4 * time.Millisecond)))
		b.retryAt = 0
		if reply.Granted == 0 && p.limit >= b.crowd.Terms(now, b.terms).Limit {
			b.retryAt = retryAt(now, reply.Retry)
		}
	}
	if reply.Granted <= 0 {
		return 0
	}
	b.granted += usage.Average(float64(reply.Granted) / b.rateMemory().Seconds())
	b.group.Add(now, 0, 0, reply.Granted)
	l := lease{
		from: now.Add(reply.Delay), end: p.sent.Add(reply.Delay + b.life()),
		tokens: reply.Granted, origin: origin{bucket: reply.Bucket, until: never},
	}
	if b.mode == fleet.ModeWindow {
		end := p.sent.Add(reply.Valid)
		l.origin.until = end.Add(b.terms.Window - b.bucketLength())
		b.bucketEnd = end
		if reply.Delay > 0 {
			b.bucketEnd = end.Add(-b.bucketLength())
		}
		b.passes.Align(b.bucketEnd)
		l.end = min(l.end, end)
	}
	l.end = packed.WholeUnit(l.end)
	switch {
	case l.end <= max(now, l.from) || b.released.Load():
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
func (p *pending) unanswered(now clock.Instant, err error) {
	if b := p.budget; !p.failed {
		p.failed = true
		b.tells = b.seen != ""
		b.owedSent -= p.owed
		b.owed += p.owed
		b.outage.Owed.Add(p.owed)
		b.remove(p)
		b.member.queue.set(b, min(b.due, nextTick(now)))
		if p.sent < b.heard {
			return
		}
		if b.lost++; b.lost >= maxLost && !b.member.connection.isInDoubt() {
			b.refusedBy(now, err)
		}
	}
}

// maxLost is how many requests of a limit in a row may have no answer, while others have one,
// before the limit goes on without the backend.
const maxLost = 3

func (b *Budget) remove(p *pending) {
	b.pending = slices.DeleteFunc(b.pending, func(other *pending) bool { return other == p })
}
