// Package outage decides on the calls of a limit while the backend of the fleet does not answer, as
// [fleet.OnOutage] says.
package outage

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Outage is what a limit does while the backend does not answer its requests.
type Outage struct {
	Active bool
	Since  clock.Instant
	Err    error         // what the backend says to requests of this limit; nil if it does not answer at all
	AskAt  clock.Instant // when to ask it again
	Fair   float64       // tokens per second that are the part of this instance
	IsNew  bool          // the instance knows nothing of the limit, and has an even share

	Bucket Bucket        // decides, or:
	Window *window       // of a window of which the instance has a part; else nil
	Owed   usage.PassLog // of a window, what passed that was not leased
	count  int           // of the instances, of which the part is one

	// Of a window, what this instance had used at the last answer and what the fleet had left.
	Used, Left  float64
	IsLeftKnown bool

	// Until is, after the outage, up to when no more passes than what decided in it lets pass: the
	// other instances may not have paid yet.
	Until clock.Instant
}

// unlimited is how many tokens [fleet.OutageOpen] lets pass between two looks at a budget, and
// UnlimitedRate how many per second.
const (
	unlimited     = 1 << 26
	UnlimitedRate = 1e12
)

// Use notes that tokens passed that were not leased.
func (o *Outage) Use(tokens int64) {
	if o.Active {
		o.Bucket.Level -= float64(tokens)
		o.Owed.Add(tokens)
	}
}

// End ends the outage. What decided in it still bounds what passes, until an instant.
func (o *Outage) End(until clock.Instant) {
	*o = Outage{Window: o.Window, Bucket: o.Bucket, Until: until}
	if o.Window == nil && (o.Bucket.Rate == 0 || o.Bucket.IsUnlimited()) {
		*o = Outage{}
	}
}

// IsBounding says whether what decided in an outage that is over still bounds what passes.
func (o *Outage) IsBounding() bool { return o.Until != 0 }

// Advance brings the outage up to now, after some time.
func (o *Outage) Advance(now clock.Instant, elapsed time.Duration, passes *usage.PassLog) {
	if o.IsBounding() && o.Until <= now {
		*o = Outage{}
	}
	o.Bucket.flow(elapsed)
	o.Owed.Advance(now)
	if o.Window != nil {
		o.Window.advance(now, passes)
	}
}

// Tokens is how many may pass now.
func (o *Outage) Tokens(passes *usage.PassLog) int64 {
	if o.Window != nil {
		return o.Window.remaining(passes)
	}
	return o.Bucket.Tokens()
}

// Passes returns how many tokens per second may pass: infinite if all.
func (o *Outage) Passes(terms *fleet.Terms) float64 {
	if o.Window != nil {
		return o.Window.part / terms.Window.Seconds()
	}
	return o.Bucket.Passes()
}

// Next returns when there is a token, 0 if that is not known.
func (o *Outage) Next(now clock.Instant, passes *usage.PassLog) clock.Instant {
	switch {
	case o.Window == nil:
		return o.Bucket.next(now)
	case o.Window.part == 0:
		return 0
	case o.Window.remaining(passes) > 0:
		return now
	}
	return max(now, passes.Next())
}

// DecideBy sets what decides, of a limit with such terms. count is the number of instances, 0 if
// it is not known. carry is from 0 to 1, see [newWindow].
func (o *Outage) DecideBy(onOutage fleet.OnOutage, terms *fleet.Terms, count int, passes *usage.PassLog, carry float64) {
	isPart := onOutage == fleet.OutageLast || onOutage == fleet.OutageShare
	if onOutage == fleet.OutageShare || o.IsNew {
		o.Fair = 0
		if onOutage == fleet.OutageOpen {
			count = max(1, count)
		}
		if count > 0 {
			o.Fair = terms.PerSecond() / float64(count)
		}
	}
	o.count, o.Window, o.Bucket = count, nil, fallback(onOutage, terms, o.Fair)
	if isPart && !passes.IsOff() && terms.Limit > 0 {
		part := min(o.Fair*terms.Window.Seconds(), terms.Limit)
		if onOutage == fleet.OutageLast && count > 0 { // nothing may have passed, and calls come now
			part = max(part, leastPart*terms.Limit/float64(count))
		}
		first := part
		if o.IsLeftKnown {
			first = min(o.Used+o.Left*part/terms.Limit, max(o.Used, part))
			o.IsLeftKnown = false // it is of the present window
		}
		o.Window = newWindow(part, first, carry, passes)
	}
}

// leastPart is what an instance may use of a window of which it has used nothing, of an even
// share.
const leastPart = 0.05

// Wants returns how many tokens to ask for, to see whether the store grants some again.
func (o *Outage) Wants(now clock.Instant) int64 {
	if o.Err != nil && o.AskAt <= now {
		return 1
	}
	return 0
}

// fallback returns the bucket that decides in an outage, of a limit of which so many tokens
// per second are the part of this instance.
func fallback(onOutage fleet.OnOutage, terms *fleet.Terms, fair float64) Bucket {
	switch {
	case terms.Limit == 0:
		return Bucket{}
	case onOutage == fleet.OutageOpen:
		return UnlimitedBucket()
	case onOutage == fleet.OutageClosed:
		return Bucket{}
	case fair == 0:
		return Bucket{}
	default:
		return newBucket(min(fair, terms.PerSecond()))
	}
}

// Recount goes over to another number of instances.
func (o *Outage) Recount(onOutage fleet.OnOutage, terms *fleet.Terms, count int, passes *usage.PassLog) {
	if count == o.count || onOutage != fleet.OutageShare && !o.IsNew {
		return
	}
	level, carry := o.Bucket.Level, 0.0
	if o.Window != nil {
		carry = o.Window.carry
	}
	o.DecideBy(onOutage, terms, count, passes, carry)
	o.Bucket.Level = min(level, o.Bucket.Most)
}

// Chargeable is how much of what passed in the outage still matters, of a window, when the store is told at an
// instant: what passed in it, in the present one of so many buckets and in those before that one, the latest
// first. What [fleet.OutageOpen] let pass beyond the part of this instance is forgiven, or nothing would pass
// for a window.
func (o *Outage) Chargeable(told clock.Instant, onOutage fleet.OnOutage, terms *fleet.Terms, buckets int) (present int64, before []int64) {
	o.Owed.Advance(told)
	counts := o.Owed.Counts
	if onOutage == fleet.OutageOpen {
		o.forgive(told)
	}
	present = min(counts[0], int64(terms.Limit))
	left := int64(terms.Limit) - present
	perPart := (max(1, buckets) + len(counts) - 1) / len(counts) // more than one of very many buckets
	begun := int(max(0, told.Sub(o.Owed.Begin)) / (o.Owed.Length / time.Duration(perPart)))
	for i, count := range counts[1:] {
		if count = min(count, left); count > 0 {
			before = append(before, make([]int64, begun+i*perPart+1-len(before))...)
			before[len(before)-1] = count
			left -= count
		}
	}
	return present, before
}

// forgive scales down what passed in a window to the part of this instance; of a window without
// parts, to that of the time since it began.
func (o *Outage) forgive(now clock.Instant) {
	lasted := o.Owed.Length * time.Duration(len(o.Owed.Counts))
	if len(o.Owed.Counts) == 1 {
		lasted = min(lasted, now.Sub(o.Owed.Begin))
	}
	passed, most := float64(o.Owed.Sum()), o.Fair*lasted.Seconds()
	for i, count := range o.Owed.Counts {
		o.Owed.Counts[i] = min(count, int64(float64(count)*most/max(1, passed)))
	}
}

// ChargeableOfBucket is how much of what passed in the outage still matters, of a bucket from
// which tokens are granted up to a time ahead: what passed in the time in which it fills, and what
// was more than the part of this instance, unless [fleet.OutageOpen] let it pass.
func (o *Outage) ChargeableOfBucket(now clock.Instant, passed int64, terms *fleet.Terms, ahead time.Duration) int64 {
	rate := terms.PerSecond()
	if rate == 0 {
		return 0
	}
	lasted, fair, owed := now.Sub(o.Since).Seconds(), o.Fair, float64(passed)
	more := 0.0
	if !o.Bucket.IsUnlimited() {
		fair = max(fair, o.Bucket.Rate)
		more = max(0, owed-fair*lasted)
	}
	recent := fair * min(lasted, terms.Burst/rate)
	return int64(min(owed, recent+more, terms.Burst+rate*ahead.Seconds()))
}
