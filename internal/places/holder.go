package places

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// How often a holder claims and looks. The constants were found by simulation.
const (
	tick      = 2 * time.Millisecond   // the least between two claims
	heartbeat = 250 * time.Millisecond // the most, while it has places or wants some
	patience  = 100 * time.Millisecond // between two claims for places that it should have
	raising   = 40 * time.Millisecond  // the least between two claims for more while others want more, too
	window    = 5 * time.Millisecond   // for which places are idle before they go back while others want more

	// leastLife is the life without the time of answers, which DefaultLife has twice.
	leastLife = DefaultLife - 200*time.Millisecond
	never     = clock.Instant(math.MaxInt64)
)

// LifeOf is how long a lease has to last if the store may take so long for an answer.
func LifeOf(timeout time.Duration) time.Duration { return leastLife + 2*timeout }

// Use is what the calls of an instance do with its places.
type Use struct {
	InUse   int64 // calls under way
	Waiting int64 // calls that wait for a place
	Missed  int64 // calls that were refused because no place was free, since the last time
	Peak    int64 // the most under way at once since the last time
}

// Holder holds the places of one limit on one instance. It starts with none. It has no lock: who
// uses it guards it, together with the count of calls under way.
type Holder struct {
	limit  int64
	life   time.Duration
	keeps  bool // one free place always
	outage Outage
	share  int64 // of OutageShare

	held, target int64
	end          clock.Instant // of the lease; 0 if there is none
	grant        Grant         // the last one

	sequence int64
	told     Claim         // the last one that has an answer
	sent     Claim         // the last one
	sentAt   clock.Instant // 0 if none was
	isAsking bool          // it has no answer yet
	isAsked  bool          // a claim was sent
	hasNews  bool          // places were granted, as the store has said
	isGone   bool          // the limit is not needed any more
	turnAt   clock.Instant // see [Grant.Turn]
	endsAt   clock.Instant // see [Grant.Ends]

	use     Use
	demand  demand
	current clock.Instant // the last instant that was told
}

// Outage is what a holder does while it cannot reach the store.
type Outage uint8

// What it can do.
const (
	Connected   Outage = iota // nothing: there is no outage
	OutageLast                // it goes on with the places that it has
	OutageShare               // it has its part of the limit by the number of instances
	OutageOpen                // all calls pass
	OutageLapse               // it goes on until its lease ends
)

// NewHolder returns a holder of a limit. Of one that keeps a place the first call after a quiet
// time finds one, as long as the limit has places for all instances.
func NewHolder(limit int64, life time.Duration, keeps bool, now clock.Instant) *Holder {
	return &Holder{limit: limit, life: life, keeps: keeps, demand: newDemand(now), current: now}
}

// SetLimit changes the limit.
func (h *Holder) SetLimit(limit int64, keeps bool) { h.limit, h.keeps = limit, keeps }

// Allowed is how many calls may be under way on this instance.
func (h *Holder) Allowed() int64 {
	switch h.outage {
	case OutageOpen:
		return Most
	case OutageShare:
		return h.share
	case OutageLast:
		return min(h.held, h.limit)
	}
	if h.end == 0 {
		return 0
	}
	return h.held
}

// End is when fewer calls may be under way unless the store answers: the last instant there is if
// that cannot be. From then on Lapse is to be called before any other call passes.
func (h *Holder) End() clock.Instant {
	if h.end == 0 || h.outage != Connected && h.outage != OutageLapse {
		return never
	}
	return h.end
}

// Lapse ends the lease if its time is over: what is in use is all that is left. In an outage the holder
// remembers what it had, which is nobody else's if the store was away for all: it claims it again.
func (h *Holder) Lapse(now clock.Instant, inUse int64) {
	if now < h.End() {
		return
	}
	if h.end = 0; h.outage == Connected {
		h.held = inUse
	}
}

// GivesBack says whether the next place that becomes free goes to the fleet.
func (h *Holder) GivesBack() bool { return h.outage == Connected && h.held > h.target }

// Ended is called when a call has ended, or is not made after all, and so many are left. It says
// whether a place goes to the fleet, so that the holder has to be looked at.
func (h *Holder) Ended(inUse int64) bool {
	switch {
	case h.outage != Connected:
		return false
	case inUse >= h.held: // it had more than it holds, as others have got its places
		return inUse < h.told.Held
	case h.held <= h.target:
		return false
	}
	h.held = max(h.target, inUse)
	return true
}

// Begin has the holder work without the store from now on, of so many instances; 0 if that is not
// known: then its part is nothing. A holder whose lease has ended before goes on with what is in use,
// and no more, by OutageLast. One that the store has never answered has its part: it has had no
// chance to get places.
func (h *Holder) Begin(o Outage, instances int) {
	if h.share = 0; instances > 0 {
		h.share = h.limit / int64(instances)
	}
	if h.outage = o; o == OutageLast && h.told.Sequence == 0 {
		h.outage = OutageShare
	}
}

// Outage is what the holder does at present.
func (h *Holder) Outage() Outage { return h.outage }

// IsValid says whether the lease has not ended.
func (h *Holder) IsValid(now clock.Instant) bool { return h.end > now }

// News says that the store has granted places.
func (h *Holder) News() { h.hasNews = true }

// Retry has the holder claim at once: the store may answer again.
func (h *Holder) Retry() { h.isAsking, h.hasNews = false, true }

// Leave has the holder give its places back as calls end.
func (h *Holder) Leave() { h.isGone, h.target = true, 0 }

// Return undoes Leave.
func (h *Holder) Return() { h.isGone = false }

// Last returns what the store is told when the instance ends or the limit is gone.
func (h *Holder) Last(use Use) Claim {
	h.sequence++
	h.held, h.isAsking = use.InUse, false
	return Claim{
		Sequence: h.sequence, Limit: h.limit, Held: use.InUse, InUse: use.InUse, Want: use.InUse,
		Born: h.grant.Born, Number: h.grant.Number,
	}
}

// Look takes what calls do, gives back what is idle, and returns the claim that is to be made now.
// The caller sets its instance. It is to be called when it is [Holder.Due], and when calls find no
// place.
func (h *Holder) Look(now clock.Instant, use Use) (Claim, bool) {
	h.current, h.use = now, use
	h.demand.add(now, use)
	h.Lapse(now, use.InUse)
	h.endTurn(now)
	h.shrink(now)
	if h.isAsking || h.due(now) > now {
		return Claim{}, false
	}
	h.sequence++
	want, spare := h.wants(now)
	h.sent = Claim{
		Sequence: h.sequence, Limit: h.limit, Held: h.claim(), InUse: use.InUse, Want: want, Spare: spare,
		Life: h.life, Born: h.grant.Born, Number: h.grant.Number,
	}
	h.sentAt, h.isAsking, h.isAsked, h.hasNews = now, true, true, false
	return h.sent, true
}

// claim is how many places the holder keeps. What it had before its lease ended may be somebody
// else's by now.
func (h *Holder) claim() int64 {
	if h.end == 0 && h.outage == Connected {
		return h.use.InUse
	}
	return max(h.held, h.use.InUse)
}

// wants returns how many places calls need, and how many should be free beside these.
func (h *Holder) wants(now clock.Instant) (want, spare int64) {
	want = min(h.demand.now(now), Most)
	if h.isGone {
		return h.use.InUse, 0
	}
	if h.keeps || h.demand.isRecent(now) {
		spare = max(1, h.demand.peak()+1-want)
	}
	return want, min(spare, Most)
}

// shrink gives back what is idle: what is above the target and, while others want more, what was
// not used for a while.
func (h *Holder) shrink(now clock.Instant) {
	if h.outage != Connected || h.end == 0 {
		return
	}
	keep := h.held
	if h.isGone {
		keep = 0
	}
	if h.held > h.target {
		keep = min(keep, h.target)
	}
	if h.grant.Crowded > 0 {
		keep = min(keep, h.demand.now(now))
	}
	h.held = min(h.held, max(keep, h.use.InUse))
}

// endTurn has the place that is left over go back when it becomes free next: then the store says whose it is.
func (h *Holder) endTurn(now clock.Instant) {
	if h.turnAt > 0 && now >= h.turnAt && h.outage == Connected {
		h.target, h.turnAt = max(0, h.target-1), 0
	}
}

// Due is when Look is to be called: the last instant there is if not before a call finds no place.
func (h *Holder) Due() clock.Instant {
	if h.isAsking {
		return never
	}
	due := h.due(h.current)
	if h.grant.Crowded > 0 && h.held > 0 && h.outage == Connected {
		due = min(due, h.demand.until)
	}
	if h.turnAt > 0 && h.outage == Connected {
		due = min(due, h.turnAt)
	}
	return due
}

// due is when the next claim is to be made.
func (h *Holder) due(now clock.Instant) clock.Instant {
	want, spare := h.wants(now)
	soon := h.sentAt.Add(tick)
	if !h.isAsked {
		soon = now
	}
	switch {
	case h.outage != Connected && !h.hasNews:
		return never
	case h.hasNews, !h.isAsked && want+spare+h.held > 0, h.isAsked && h.claim() < h.told.Held && h.sent.Sequence == h.told.Sequence:
		return soon
	case want+spare+h.held == 0 && h.told.Want+h.told.Spare == 0:
		return never
	}
	due := h.sentAt.Add(heartbeat)
	if h.endsAt > 0 && want > h.held {
		due = min(due, h.endsAt)
	}
	switch {
	case want > h.held && h.told.Want <= h.target && want > h.told.Want:
		if due = soon; h.grant.Crowded > 0 { // the store does not know that more is wanted
			due = max(due, h.sentAt.Add(raising))
		}
	case want > h.held && h.held < h.target, h.sent.Sequence != h.told.Sequence:
		due = min(due, h.sentAt.Add(patience))
	}
	return max(due, soon)
}

// Answered takes the answer to a claim. It says whether it was the answer to the last one: what
// answers to others say is not so any more.
func (h *Holder) Answered(now clock.Instant, sequence int64, g Grant, inUse int64) bool {
	if sequence != h.sent.Sequence || !h.isAsked {
		return false
	}
	h.current, h.isAsking = now, false
	if g.Late { // as when somebody else has its name
		return true
	}
	h.outage = Connected
	h.told = h.sent
	h.told.Held = max(g.Held, h.sent.InUse)
	h.grant = g
	h.held, h.target = g.Held, g.Target
	h.end = h.sentAt.Add(h.life)
	if h.isGone {
		h.target = 0
	}
	if h.turnAt = 0; g.Turn > 0 {
		h.turnAt = now.Add(g.Turn)
	}
	if h.endsAt = 0; g.Ends > 0 {
		h.endsAt = now.Add(g.Ends)
	}
	h.use.InUse = inUse
	h.Lapse(now, inUse)
	h.shrink(now)
	return true
}

// Unanswered says that a claim has no answer. What it would have brought may be so in the store.
func (h *Holder) Unanswered(sequence int64) {
	if sequence == h.sent.Sequence {
		h.isAsking = false
	}
}

// Number is the fencing number of calls that begin now, see [Grant.Number]; 0 before the first grant.
func (h *Holder) Number() int64 { return h.grant.Number }

// Status tells how the holder is.
func (h *Holder) Status() Status {
	want, _ := h.wants(h.current)
	held := h.held
	if h.outage != Connected {
		held = h.Allowed()
	} else if h.end == 0 {
		held = 0
	}
	return Status{Limit: h.limit, Held: held, Target: h.target, Wanted: want, Crowded: h.grant.Crowded, Instances: h.grant.Instances}
}

// Status is how a holder is.
type Status struct {
	Limit     int64 // of the fleet
	Held      int64 // places that calls here may have; in an outage, those that [Outage] lets them have
	Target    int64 // places that this instance should have
	Wanted    int64 // places that its calls want
	Crowded   int64 // instances that want more than they should have
	Instances int64 // that have places or want some
}
