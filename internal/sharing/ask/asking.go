package ask

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/packed"
)

// Answer is the answer to one call.
type Answer struct {
	Allowed bool
	Wait    time.Duration // the call is allowed, but only after this time; of [fleet.AskThrottle]
	Retry   time.Duration // the call is denied: how long until one like it can pass; 0: not known, [fleet.Never]
	Outage  bool          // the backend did not answer in time: what [fleet.OnOutage] makes of it

	// Released says that the asker, which is of a group, was released before the call asked.
	// Nothing is decided: another asker has taken over.
	Released bool

	// As in [fleet.Reply]; 0 in an outage.
	Limit     int64
	Remaining int64
	Reset     time.Duration
}

// asking is a call that asks.
type asking struct {
	asker *Asker
	n     int32
	asked clock.Instant
	limit float64      // by which it asked
	done  func(Answer) // nil when it was called
}

// Answered takes the reply to one call.
func (q *asking) Answered(now clock.Instant, reply *fleet.Reply) {
	a := q.asker
	a.count(now)
	a.lost = 0
	switch {
	case reply.Err != nil:
		a.refusedBy(now, reply.Err)
		q.Unanswered(now, reply.Err)
		return
	case a.outage.Err != nil:
		a.backIsUp(now)
	}
	a.learn(now, reply)
	if reply.Bucket != a.bucket {
		a.bucket, a.bucketFrom = reply.Bucket, q.asked
	}
	if q.done == nil { // it was decided on without an answer
		if reply.Granted > 0 {
			a.back += reply.Granted
			a.flushSoon()
		}
		return
	}
	a.seeCrowd(now, reply)
	answer := Answer{Reset: reply.Reset}
	if reply.Granted >= int64(q.n) {
		answer.Allowed, answer.Wait = true, reply.Delay
		a.pass(int64(q.n))
		a.outage.Bucket.Level -= float64(q.n)
	} else {
		answer.Retry = reply.Retry
		denied := a.deniedBy(reply)
		end := now.Add(min(denied, packed.Forever) + packed.Unit)
		if denied > 0 && q.limit >= a.crowd.Terms(now, a.terms).Limit {
			a.denied.Store(uint64(packed.Pack(end, false, int64(q.n))))
		}
	}
	answer.Limit, answer.Remaining = a.quota(now, reply)
	a.measurePortion(now, q.asked, reply)
	q.answer(answer)
}

// Unanswered decides on a call that has no answer.
func (q *asking) Unanswered(now clock.Instant, err error) {
	if q.done == nil {
		return
	}
	a := q.asker
	a.count(now)
	if a.lost++; a.lost >= exchange.MaxLost && a.place >= 0 && a.set.Running() && !a.set.IsInDoubt() {
		a.refusedBy(now, err)
	}
	q.answer(a.decide(now, q.n))
}

func (q *asking) answer(answer Answer) {
	done := q.done
	q.done = nil
	q.asker.underWay--
	q.asker.set.Later(func() { done(answer) })
}

func (q *asking) request(now clock.Instant) fleet.Request {
	terms := q.asker.crowd.Terms(now, q.asker.terms)
	q.limit = terms.Limit
	return fleet.Request{Operation: q.asker.operation, Terms: terms, Want: int64(q.n), Keep: exchange.MaxLife}
}

// UnansweredBefore implements Requester.
func (q *asking) UnansweredBefore() int { return q.asker.lost }
