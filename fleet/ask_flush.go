package fleet

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// flush is a request that hands back tokens, or pays for some that passed.
type flush struct {
	asker *Asker
	paid  int64
	again bool // it pays what could not be paid at once
}

// flushSoon has the member hand back and pay with the next batch. The mutex is held.
func (a *Asker) flushSoon() {
	if !a.flushing {
		a.flushing = true
		to := a.member.partitionOf(a.terms.Key)
		to.flushes = append(to.flushes, a)
	}
}

// sendFlushes adds requests for what is to be handed back or paid to a partition: for all of it,
// if the member ends.
func (m *Member) sendFlushes(now clock.Instant, to *partition) {
	for _, p := range to.payments {
		m.request(now, p.request, p.by, false)
	}
	to.payments = nil
	for len(to.flushes) > 0 && (!m.running || m.maySendMore(to)) {
		a := to.flushes[0]
		to.flushes[0] = nil
		to.flushes = to.flushes[1:]
		a.flushing = false
		if a.outage.active {
			continue // when that ends, it is known what still matters
		}
		request := Request{Operation: a.operation, Terms: a.terms, Keep: maxLife, BackTo: a.bucket}
		if a.back > 0 {
			request.Want = -a.back
			a.back = 0
			m.request(now, request, &flush{asker: a}, a.group != nil)
		}
		if a.owed > 0 {
			request.Want = a.owed
			m.request(now, request, &flush{asker: a, paid: a.owed}, a.group != nil)
			a.owed = 0
		}
	}
}

// answered takes the answer to a payment. What could not be paid in one is paid as far as the
// limit has tokens left: then it has none, which is all that matters.
func (f *flush) answered(_ clock.Instant, reply *Reply) {
	if reply.Err == nil && f.paid > 0 && !f.again && reply.Granted == 0 && reply.Remaining > 0 {
		a := f.asker
		request := Request{
			Operation: a.operation, Terms: a.terms, Keep: maxLife,
			Want: min(f.paid, reply.Remaining),
		}
		to := a.member.partitionOf(a.terms.Key)
		to.payments = append(to.payments, payment{request, &flush{asker: a, paid: request.Want, again: true}})
	}
}

// payment is a request of a flush that is to be sent in the next step.
type payment struct {
	request Request
	by      *flush
}

// unanswered has what was to be paid paid once more. What was to be handed back is lost: it
// may have been.
func (f *flush) unanswered(clock.Instant, error) {
	if f.paid > 0 {
		f.asker.owed += f.paid
		f.asker.flushSoon()
	}
}

// GiveBack gives back n tokens that a call took at an instant. Of a window that has ended
// they are lost.
func (a *Asker) GiveBack(taken clock.Instant, n int32) {
	a.correct(taken, -int64(n))
}

// Settle corrects what a call took at an instant: by more tokens, or, if n is negative, less.
func (a *Asker) Settle(taken clock.Instant, n int32) {
	a.correct(taken, int64(max(n, -math.MaxInt32)))
}

func (a *Asker) correct(taken clock.Instant, n int64) {
	m := a.member
	m.mu.Lock()
	defer m.unlock(max(taken, a.counted))
	switch part := min(-n, a.owed); {
	case n > 0:
		a.owed += n
	case part > 0:
		a.owed -= part
		a.outage.use(-part)
		a.back += -n - part
	case a.operation != AskFixedWindow || taken >= a.bucketFrom:
		a.back -= n
	}
	a.pass(n)
	a.flushSoon()
	m.hasten(a.counted)
}

// Change has the limit go on with other terms, of the same key.
func (a *Asker) Change(terms Terms, operation Operation, onOutage OnOutage, now clock.Instant) {
	m := a.member
	m.mu.Lock()
	defer m.unlock(now)
	a.count(now)
	if terms != a.terms || operation != a.operation {
		a.denied.Store(uint64(pack(now, false, 0)))
	}
	a.terms, a.operation, a.onOutage = terms, operation, onOutage
	if a.outage.active {
		a.outage.bucket = a.newFallback(a.outage.fair, a.outage.fair == 0)
	}
}

// Idle says whether nothing was asked of late.
func (a *Asker) Idle(now clock.Instant) bool {
	a.member.mu.Lock()
	defer a.member.mu.Unlock()
	return a.isIdle(now)
}

func (a *Asker) isIdle(now clock.Instant) bool {
	a.count(now) // calls that were refused since it was last
	return a.underWay == 0 && a.owed == 0 && a.back == 0 &&
		a.DeniedFor(now, math.MaxInt32) == 0 && now.Sub(a.lastCall) > time.Second
}

// Release says that nobody will ask any more. Calls that have asked get their answers.
func (a *Asker) Release(now clock.Instant) {
	m := a.member
	m.mu.Lock()
	defer m.unlock(now)
	a.release()
}

func (a *Asker) release() {
	m := a.member
	if a.place < 0 {
		return
	}
	if a.outage.err != nil {
		m.noteAccepted()
		a.group.accepted()
	}
	a.group.left()
	last := len(m.askers) - 1
	m.askers[a.place] = m.askers[last]
	m.askers[a.place].place = a.place
	m.askers = slices.Delete(m.askers, last, last+1)
	a.place = -1
	m.restIfUnused()
}

// beginOutage has the asker decide by itself. The mutex of the member is held, as it is when
// the functions below are called.
func (a *Asker) beginOutage(now clock.Instant) { a.lose(now, nil) }

func (a *Asker) lose(now clock.Instant, err error) {
	a.count(now)
	if a.outage.active {
		a.outage.err = err
		return
	}
	passed := a.passed.perSecond()
	a.outage = outage{
		active: true, since: now, err: err, fair: passed,
		bucket: a.newFallback(passed, a.demand.perSecond() == 0),
	}
}

// refusedBy notes that the store has answered a request with an error.
func (a *Asker) refusedBy(now clock.Instant, err error) {
	if a.place < 0 {
		return // it was released
	}
	if a.outage.err == nil {
		a.member.noteRefusal(a.terms.Key, err)
		a.group.refused(err)
	}
	a.lose(now, err)
	a.outage.askAt = now.Add(a.member.jitter(maxProbeWait))
}

// backIsUp notes that the store answers the requests of the asker. What passed meanwhile is
// paid as far as it still matters.
func (a *Asker) backIsUp(now clock.Instant) {
	if !a.outage.active {
		return
	}
	if a.outage.err != nil {
		a.member.noteAccepted()
		a.group.accepted()
	}
	lasted := max(now.Sub(a.outage.since).Seconds(), 1e-9)
	matters := min(1, a.terms.Window.Seconds()/lasted)
	a.owed = int64(min(float64(a.owed)*matters, a.terms.Limit))
	a.outage = outage{}
	a.flushSoon()
}
