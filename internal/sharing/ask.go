package sharing

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/outage"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Asker asks the backend for each call, see [fleet.ModeAsk]. Calls that ask at the same time go in
// one batch. All methods may be called concurrently.
type Asker struct {
	member  *Member
	group   *usage.Tally  // nil if it is of no group
	denied  atomic.Uint64 // packed.Tokens: up to when so many tokens are denied
	refused atomic.Int64  // tokens of calls that did not ask because of that
	balance balance

	// What follows is guarded by member.mu.
	terms      fleet.Terms
	operation  fleet.Operation
	onOutage   fleet.OnOutage
	place      int // in the list of all askers, -1 if released
	counted    clock.Instant
	lastCall   clock.Instant
	demand     usage.Average
	passed     usage.Average
	passes     usage.PassLog // of windows
	portion    usage.Portion
	crowd      usage.Crowd
	outage     outage.Outage
	underWay   int           // calls that wait for an answer
	lost       int           // calls without an answer since the last one that has one
	back       int64         // tokens to be handed back
	owed       int64         // tokens that passed without an answer
	charges    []charge      // others, which passed before now
	flushing   bool          // it is in the list of those that have something to hand back or to pay
	bucket     int64         // the last [fleet.Reply.Bucket]
	bucketFrom clock.Instant // when it was first known
	leftUntil  clock.Instant // when the fixed window ends of which the last reply told
	told       usage.WindowUse
}

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

// Ask asks for n tokens, at least 1, at now. done is called once: by the timeout at the
// latest, or at once, by Ask, if the answer is known, as in an outage. No lock is held then.
// It must not block.
func (a *Asker) Ask(now clock.Instant, n int32, done func(Answer)) {
	if wait := a.DeniedFor(now, n); wait > 0 {
		a.refused.Add(int64(n))
		done(Answer{Retry: wait})
		return
	}
	m := a.member
	m.mu.Lock()
	if a.place < 0 && a.group != nil {
		m.unlock(now)
		done(Answer{Released: true})
		return
	}
	a.count(now)
	a.demand.Add(int64(n), 0, usage.RateMemory(&a.terms, m.count))
	a.group.Add(now, int64(n), 0, 0)
	a.lastCall = now
	if a.outage.IsBounding() && a.outage.Tokens(&a.passes) < int64(n)+int64(a.underWay) {
		answer := Answer{Retry: min(a.outage.Next(now, &a.passes), a.outage.Until).Sub(now)}
		m.unlock(now)
		done(answer)
		return
	}
	if wait := a.waitForPart(now, int64(n)); wait > 0 && !a.outage.Active && m.running {
		m.unlock(now)
		done(Answer{Retry: wait})
		return
	}
	if !m.running || a.place < 0 || a.outage.Active && (a.outage.Err == nil || now < a.outage.AskAt) {
		answer := a.decide(now, n)
		m.unlock(now)
		done(answer)
		return
	}
	if a.outage.Err != nil {
		a.outage.AskAt = now.Add(m.jitter(maxProbeWait))
	}
	a.underWay++
	to := m.partitionOf(a.terms.Key)
	to.asks = append(to.asks, &asking{asker: a, n: n, asked: now, done: done})
	m.unlock(now)
}

// DeniedFor returns for how long a denial of the backend still holds for a call that takes n
// tokens, [fleet.Never] if for ever, 0 if it is worth asking. It takes no lock, and counts nothing.
func (a *Asker) DeniedFor(now clock.Instant, n int32) time.Duration {
	w := packed.Tokens(a.denied.Load())
	switch {
	case w == 0 || int64(n) < w.Tokens():
		return 0
	case w.HasEnded(now):
		a.denied.CompareAndSwap(uint64(w), 0) // or it would begin anew when the end has wrapped around
		return 0
	}
	if left := w.Left(now); left < packed.Forever/2 {
		return max(1, left)
	}
	return fleet.Never
}

// Denied is DeniedFor for a call that is refused because of it: it is counted as demand.
func (a *Asker) Denied(now clock.Instant, n int32) time.Duration {
	wait := a.DeniedFor(now, n)
	if wait > 0 {
		a.refused.Add(int64(n))
	}
	return wait
}

// count brings the averages up to now. The mutex of the member is held.
func (a *Asker) count(now clock.Instant) {
	elapsed, memory := now.Sub(a.counted), usage.RateMemory(&a.terms, a.member.count)
	refused := a.refused.Swap(0)
	a.demand.Add(refused, elapsed, memory)
	a.group.Add(now, refused, 0, 0)
	if refused > 0 {
		a.lastCall = max(a.lastCall, now)
	}
	a.passed.Add(0, elapsed, memory)
	a.passes.Advance(now)
	a.outage.Advance(now, elapsed, &a.passes)
	a.counted = max(a.counted, now)
}

// pass counts tokens that passed. The mutex of the member is held.
func (a *Asker) pass(n int64) {
	a.passed.Add(n, 0, usage.RateMemory(&a.terms, a.member.count))
	a.passes.Add(n)
	a.group.Add(a.counted, 0, n, n)
}

// decide answers a call without the backend. The mutex of the member is held.
func (a *Asker) decide(now clock.Instant, n int32) Answer {
	by := &a.outage
	if !by.Active { // one answer was lost
		by = a.newOutage(now, nil)
		if by.Bucket.Rate > 0 {
			by.Bucket.Level = max(by.Bucket.Most, float64(n))
		}
	}
	if by.Tokens(&a.passes) < int64(n) {
		answer := Answer{Outage: true}
		if at := by.Next(now, &a.passes); at > now {
			answer.Retry = at.Sub(now)
		}
		return answer
	}
	by.Use(int64(n))
	a.owed += int64(n)
	a.pass(int64(n))
	a.flushSoon()
	return Answer{Allowed: true, Outage: true}
}

// answered takes the reply to one call.
func (q *asking) answered(now clock.Instant, reply *fleet.Reply) {
	a := q.asker
	a.count(now)
	a.lost = 0
	switch {
	case reply.Err != nil:
		a.refusedBy(now, reply.Err)
		q.unanswered(now, reply.Err)
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

// unanswered decides on a call that has no answer.
func (q *asking) unanswered(now clock.Instant, err error) {
	if q.done == nil {
		return
	}
	a := q.asker
	a.count(now)
	if a.lost++; a.lost >= maxLost && a.place >= 0 && a.member.running && !a.member.connection.isInDoubt() {
		a.refusedBy(now, err)
	}
	q.answer(a.decide(now, q.n))
}

func (q *asking) answer(answer Answer) {
	done := q.done
	q.done = nil
	q.asker.underWay--
	q.asker.member.calls = append(q.asker.member.calls, func() { done(answer) })
}

// sendAsks adds requests for all calls that ask, and for what is to be handed back or paid.
func (m *Member) sendAsks(now clock.Instant) {
	for _, p := range m.partitions {
		for len(p.asks) > 0 && m.maySendMore(p) {
			q := p.nextAsk()
			batch := m.request(now, q.request(now), q, q.asker.group != nil)
			batch.deadline = min(batch.deadline, q.asked.Add(m.config.Timeout))
		}
		if !m.connection.out && m.maySendMore(p) {
			m.sendFlushes(now, p)
		}
	}
}

// nextAsk takes the call that asked first.
func (p *partition) nextAsk() *asking {
	first := p.asks[0]
	p.asks[0] = nil
	p.asks = p.asks[1:]
	return first
}

func (q *asking) request(now clock.Instant) fleet.Request {
	terms := q.asker.crowd.Terms(now, q.asker.terms)
	q.limit = terms.Limit
	return fleet.Request{Operation: q.asker.operation, Terms: terms, Want: int64(q.n), Keep: maxLife}
}
