package ask

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/unordered"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// flush is a request that hands back tokens, or pays for some that passed.
type flush struct {
	asker *Asker
	paid  charge
}

// charge is tokens that are to be paid as of when they passed.
type charge struct {
	passed clock.Instant
	tokens int64
}

// flushSoon has the member hand back and pay with the next batch. The mutex is held.
func (a *Asker) flushSoon() {
	if !a.flushing {
		a.flushing = true
		q := a.set.queueOf(a.terms.Key)
		q.flushes = append(q.flushes, a)
	}
}

// sendFlushes adds requests for what is to be handed back or paid to a partition: for all of it,
// if the instance ends.
func (set *Askers) sendFlushes(now clock.Instant, to *queue) {
	for len(to.flushes) > 0 && (!set.Running() || set.MaySendMore(to.to)) {
		a := to.flushes[0]
		to.flushes[0] = nil
		to.flushes = to.flushes[1:]
		a.flushing = false
		if !a.outage.Active { // when that ends, it is known what still matters
			a.flush(now)
		}
	}
}

// flush adds requests for all that the asker is to hand back or to pay.
func (a *Asker) flush(now clock.Instant) {
	a.count(now)
	request := fleet.Request{Operation: a.operation, Terms: a.terms, Keep: exchange.MaxLife, BackTo: a.bucket}
	if a.back > 0 {
		back := request
		back.Want = -a.back
		a.set.Request(now, back, &flush{asker: a}, a.group != nil)
	}
	if a.owed > 0 {
		a.charges = append(a.charges, charge{now, a.owed})
	}
	for _, c := range a.charges {
		if a.isPast(now, c.passed) {
			continue
		}
		request.Owed, request.Age = c.tokens, max(0, now.Sub(c.passed))
		a.set.Request(now, request, &flush{asker: a, paid: c}, a.group != nil)
	}
	a.back, a.owed, a.charges = 0, 0, nil
}

// isPast says whether what passed at an instant is of a fixed window that will have ended when the store is told:
// there it would count for the one after it.
func (a *Asker) isPast(now, passed clock.Instant) bool {
	if a.operation != fleet.AskFixedWindow {
		return false
	}
	begin := a.passes.Begin
	if next := a.passes.Next(); next <= now.Add(a.set.Lead()) {
		begin = next
	}
	return passed < begin
}

// Answered learns what is left of the limit.
func (f *flush) Answered(now clock.Instant, reply *fleet.Reply) {
	if f.paid.tokens == 0 {
		f.asker.learnOfReturn(now, reply)
		return
	}
	f.asker.learn(now, reply)
}

// Unanswered has what was to be paid paid once more. What was to be handed back is lost: it
// may have been.
func (f *flush) Unanswered(clock.Instant, error) {
	a := f.asker
	switch {
	case f.paid.tokens == 0:
		return
	case len(a.charges) < usage.MaxParts:
		a.charges = append(a.charges, f.paid)
	default:
		a.owed += f.paid.tokens
	}
	a.flushSoon()
}

// UnansweredBefore implements Requester.
func (*flush) UnansweredBefore() int { return 0 }

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
	set := a.set
	set.Mu.Lock()
	defer set.Unlock(max(taken, a.counted))
	switch part := min(-n, a.owed); {
	case n > 0:
		a.owed += n
		a.outage.Owed.Add(n)
	case part > 0:
		a.owed -= part
		a.outage.Use(-part)
		a.back += -n - part
	case a.operation != fleet.AskFixedWindow || taken >= a.bucketFrom:
		a.back -= n
	}
	a.balance.left.Add(-n)
	a.pass(n)
	a.flushSoon()
	set.Hasten(a.counted)
}

// Change has the limit go on with other terms, of the same key.
func (a *Asker) Change(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage, now clock.Instant) {
	set, terms := a.set, completed(terms, operation)
	set.Mu.Lock()
	defer set.Unlock(now)
	a.count(now)
	if terms != a.terms || operation != a.operation {
		a.crowd = usage.Crowd{}
		a.denied.Store(uint64(packed.Pack(now, false, 0)))
	}
	isOther := !haveSameWindows(&terms, &a.terms) || operation != a.operation
	a.terms, a.operation, a.onOutage = terms, operation, onOutage
	if isOther {
		passed, owed := a.passes.Sum(), a.outage.Owed.Sum()
		a.passes, a.portion, a.told = a.newPasses(now), usage.Portion{}, usage.WindowUse{}
		a.outage.Owed = a.passes.Empty()
		a.passes.Add(passed)
		a.outage.Owed.Add(owed)
	}
	if a.outage.Active {
		a.decideIn(&a.outage)
	}
}

// Idle says whether nothing was asked of late.
func (a *Asker) Idle(now clock.Instant) bool {
	a.set.Mu.Lock()
	defer a.set.Mu.Unlock()
	return a.isIdle(now)
}

func (a *Asker) isIdle(now clock.Instant) bool {
	a.count(now) // calls that were refused since it was last
	return a.underWay == 0 && a.owed == 0 && len(a.charges) == 0 && a.back == 0 &&
		a.DeniedFor(now, math.MaxInt32) == 0 && now.Sub(a.lastCall) > time.Second
}

// Release says that nobody will ask any more. Calls that have asked get their answers.
func (a *Asker) Release(now clock.Instant) {
	set := a.set
	set.Mu.Lock()
	defer set.Unlock(now)
	a.release()
}

func (a *Asker) release() {
	set := a.set
	if a.place < 0 {
		return
	}
	if a.outage.Err != nil {
		set.NoteAccepted()
		a.group.Accepted()
	}
	unordered.Remove(&set.all, a.place).place = a.place
	a.place = -1
	set.Left()
}

// haveSameWindows says whether the windows of both terms are the same.
func haveSameWindows(t, other *fleet.Terms) bool {
	if t.Calendar == nil || other.Calendar == nil {
		return t.Calendar == other.Calendar && t.Window == other.Window
	}
	return t.Calendar.Equal(other.Calendar)
}

// Forget releases the asker if a new one would do the same: nothing was asked of late, no
// denial holds, and nothing is owed. It says whether it did.
func (a *Asker) Forget(now clock.Instant) bool {
	set := a.set
	set.Mu.Lock()
	defer set.Unlock(now)
	if a.place < 0 || a.outage.Active || !a.isIdle(now) {
		return false
	}
	a.release()
	return true
}
