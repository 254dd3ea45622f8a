package ask

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/outage"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// logParts is how many parts the window of a log is counted in, of what passed.
const logParts = 32

// newPasses returns what counts the passes of a window, of which nothing has passed.
func (a *Asker) newPasses(now clock.Instant) usage.PassLog {
	switch a.operation {
	case fleet.AskFixedWindow:
		return usage.NewPassLog(a.terms.Window, 1, now)
	case fleet.AskSlidingLog:
		return usage.NewPassLog(a.terms.Window, logParts, now)
	default:
		return usage.PassLog{}
	}
}

// measurePortion takes the reply to a call. The mutex is held, as it is
// when the functions below are called.
func (a *Asker) measurePortion(now, asked clock.Instant, reply *fleet.Reply) {
	if a.passes.IsOff() {
		a.portion.Bucket(now)
		return
	}
	if a.operation == fleet.AskFixedWindow && reply.Reset > 0 {
		a.passes.Align(asked.Add(reply.Reset))
	}
	own, all := a.passes.Sum()-a.owed, reply.Limit-reply.Remaining
	if a.operation == fleet.AskSlidingLog && own > 0 { // the store's window begins within a part
		all = int64(float64(all) * float64(own) / (float64(own) + a.passes.Leaving(now)))
	}
	a.portion.Window(now, &a.passes, &a.terms, own, all, reply.Granted)
}

// beginOutage has the asker decide by itself.
func (a *Asker) beginOutage(now clock.Instant) { a.lose(now, nil) }

func (a *Asker) lose(now clock.Instant, err error) {
	a.count(now)
	if a.outage.Active {
		a.outage.Err = err
		return
	}
	a.outage = *a.newOutage(now, err)
	a.outage.Owed.Add(a.owed)
}

// newOutage returns an outage that begins. A value of a group of which nothing passed of late has
// its share, beginning with one token: it would be refused until the outage ends.
func (a *Asker) newOutage(now clock.Instant, err error) *outage.Outage {
	o := &outage.Outage{Active: true, Since: now, Err: err, Owed: a.passes.Empty()}
	fraction, isKnown := a.portion.Fraction()
	if o.Fair, o.IsNew = fraction*a.terms.PerSecond(), !isKnown; a.passes.IsOff() {
		o.Fair = a.passed.PerSecond()
		if a.group == nil && a.set.Instances() > 0 && a.demand.PerSecond() > o.Fair { // else it has all that it wants
			o.Fair = usage.Evened(o.Fair, a.terms.PerSecond()/float64(a.set.Instances()), usage.RateMemory(&a.terms, a.set.Instances()))
		}
	}
	if a.group != nil && a.passed.PerSecond() == 0 && a.demand.PerSecond() == 0 {
		o.IsNew = true
	}
	o.Used, o.Left, o.IsLeftKnown = a.portion.Present(&a.passes)
	a.decideIn(o)
	if a.group != nil && o.IsNew && o.Bucket.Rate > 0 && !o.Bucket.IsUnlimited() {
		o.Bucket.Level = 1
	}
	return o
}

// decideIn sets what decides in an outage.
func (a *Asker) decideIn(o *outage.Outage) {
	o.DecideBy(a.onOutage, &a.terms, a.set.Sharers(o.IsNew, a.onOutage), &a.passes, a.set.Random().Float64())
	if a.operation == fleet.AskBalance && a.onOutage == fleet.OutageOpen { // whatever the balance began with
		o.Bucket = outage.UnlimitedBucket()
	}
}

// refusedBy notes that the store has answered a request with an error.
func (a *Asker) refusedBy(now clock.Instant, err error) {
	if a.place < 0 {
		return // it was released
	}
	if a.outage.Err == nil {
		a.set.NoteRefusal(a.terms.Key, err)
		a.group.Refused(err)
	}
	a.lose(now, err)
	a.outage.AskAt = now.Add(a.set.Jitter(exchange.MaxProbeWait))
}

// backIsUp notes that the store answers the requests of the asker. What passed meanwhile is
// paid as far as it still matters: of a window when it passed, of a bucket as of now.
func (a *Asker) backIsUp(now clock.Instant) {
	if !a.outage.Active {
		return
	}
	a.count(now)
	if a.outage.Err != nil {
		a.set.NoteAccepted()
		a.group.Accepted()
	}
	o := &a.outage
	switch {
	case a.operation == fleet.AskBalance: // all of it matters for ever
	case a.passes.IsOff():
		a.owed = o.ChargeableOfBucket(now, a.owed, &a.terms, a.terms.MaxWait)
	default:
		present, before := o.Chargeable(now, a.onOutage, &a.terms, len(a.passes.Counts))
		a.owed = present
		for i, count := range before {
			if count > 0 {
				// In the middle of its part, and half a part of the store before that, which rounds it up.
				passed := o.Owed.Begin.Add(-o.Owed.Length*time.Duration(i) - o.Owed.Length*3/4)
				a.charges = append(a.charges, charge{passed, count})
			}
		}
	}
	o.End(now.Add(exchange.ReturnTime))
	a.flushSoon()
}
