package fleet

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// logParts is how many parts the window of a log is counted in, of what passed.
const logParts = 32

// newPasses returns what counts the passes of a window, of which nothing has passed.
func (a *Asker) newPasses(now clock.Instant) passLog {
	switch a.operation {
	case AskFixedWindow:
		return newPassLog(a.terms.Window, 1, now)
	case AskSlidingLog:
		return newPassLog(a.terms.Window, logParts, now)
	default:
		return passLog{}
	}
}

// measurePortion takes the reply to a call. The mutex of the member is held, as it is
// when the functions below are called.
func (a *Asker) measurePortion(now, asked clock.Instant, reply *Reply) {
	if a.passes.isOff() {
		a.portion.bucket(now)
		return
	}
	if a.operation == AskFixedWindow && reply.Reset > 0 {
		a.passes.align(asked.Add(reply.Reset))
	}
	own, fleet := a.passes.sum()-a.owed, reply.Limit-reply.Remaining
	if a.operation == AskSlidingLog && own > 0 { // the store's window begins within a part
		fleet = int64(float64(fleet) * float64(own) / (float64(own) + a.passes.leaving(now)))
	}
	a.portion.window(now, &a.passes, &a.terms, own, fleet, reply.Granted)
}

// beginOutage has the asker decide by itself.
func (a *Asker) beginOutage(now clock.Instant) { a.lose(now, nil) }

func (a *Asker) lose(now clock.Instant, err error) {
	a.count(now)
	if a.outage.active {
		a.outage.err = err
		return
	}
	a.outage = *a.newOutage(now, err)
	a.outage.owed.add(a.owed)
}

// newOutage returns an outage that begins. A value of a group of which nothing passed of late has
// its share, beginning with one token: it would be refused until the outage ends.
func (a *Asker) newOutage(now clock.Instant, err error) *outage {
	o := &outage{active: true, since: now, err: err, owed: a.passes.empty()}
	fraction, isKnown := a.portion.fraction()
	if o.fair, o.isNew = fraction*a.terms.PerSecond(), !isKnown; a.passes.isOff() {
		o.fair = a.passed.perSecond()
		if a.group == nil && a.member.count > 0 && a.demand.perSecond() > o.fair { // else it has all that it wants
			o.fair = evened(o.fair, a.terms.PerSecond()/float64(a.member.count), rateMemoryOf(&a.terms, a.member.count))
		}
	}
	if a.group != nil && a.passed.perSecond() == 0 && a.demand.perSecond() == 0 {
		o.isNew = true
	}
	o.used, o.left, o.isLeftKnown = a.portion.present(&a.passes)
	a.decideIn(o)
	if a.group != nil && o.isNew && o.bucket.rate > 0 && !o.bucket.isUnlimited() {
		o.bucket.level = 1
	}
	return o
}

// decideIn sets what decides in an outage.
func (a *Asker) decideIn(o *outage) {
	o.decideBy(a.onOutage, &a.terms, a.member.sharers(o, a.onOutage), &a.passes, a.member.random.Float64())
	if a.operation == AskBalance && a.onOutage == OutageOpen { // whatever the balance began with
		o.bucket = unlimitedBucket()
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
// paid as far as it still matters: of a window when it passed, of a bucket as of now.
func (a *Asker) backIsUp(now clock.Instant) {
	if !a.outage.active {
		return
	}
	a.count(now)
	if a.outage.err != nil {
		a.member.noteAccepted()
		a.group.accepted()
	}
	o := &a.outage
	switch {
	case a.operation == AskBalance: // all of it matters for ever
	case a.passes.isOff():
		a.owed = o.chargeableOfBucket(now, a.owed, &a.terms, a.terms.MaxWait)
	default:
		present, before := o.chargeable(now, a.onOutage, &a.terms, len(a.passes.counts))
		a.owed = present
		for i, count := range before {
			if count > 0 {
				a.charges = append(a.charges, charge{o.owed.begin.Add(-o.owed.length*time.Duration(i) - o.owed.length/2), count})
			}
		}
	}
	o.end(now)
	a.flushSoon()
}
