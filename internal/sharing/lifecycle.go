package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// setMost sets the most that a call can take by the terms.
func (b *Budget) setMost() {
	most := b.terms.Limit
	if b.mode == fleet.ModeLease && b.terms.Limit > 0 {
		// What a bucket does not hold can be granted for later.
		most = b.terms.Burst + b.terms.PerSecond()*maxLife.Seconds()
	}
	b.most.Store(int64(min(most, packed.MaxTokens/4)))
}

// Change has the limit go on with other terms, of the same key. What was leased stays, unless
// the limit is 0 now.
func (b *Budget) Change(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) {
	m := b.member
	m.mu.Lock()
	defer m.unlock(now)
	b.count(now)
	if terms != b.terms {
		b.isFull, b.retryAt, b.bucketEnd, b.crowd = false, 0, 0, usage.Crowd{}
	}
	if b.mode == fleet.ModeWindow && (terms.Window != b.terms.Window || terms.Buckets != b.terms.Buckets) {
		b.passes = b.passes.Resized(terms.Window, terms.Buckets, now)
		b.outage.Owed = b.outage.Owed.Resized(terms.Window, terms.Buckets, now)
		b.portion, b.told = usage.Portion{}, usage.WindowUse{}
	}
	b.terms = terms
	b.setMost()
	if terms.Limit == 0 {
		b.drop(now)
	}
	if b.onOutage = onOutage; b.outage.Active {
		b.outage.DecideBy(onOutage, &terms, m.sharers(&b.outage, onOutage), &b.passes, m.random.Float64())
	}
	m.queue.set(b, now)
}

// drop hands back all that is leased.
func (b *Budget) drop(now clock.Instant) {
	b.retryAt = 0
	for _, l := range b.held {
		b.handBack(l.origin, b.withdraw(l.tokens))
	}
	for _, l := range b.later {
		b.handBack(l.origin, l.tokens)
	}
	b.held, b.later = nil, nil
	b.looked = max(b.looked, now)
}

// Idle says whether nothing was asked of late, nothing is leased and nothing is owed.
func (b *Budget) Idle(now clock.Instant) bool {
	m := b.member
	m.mu.Lock()
	defer m.unlock(now)
	if b.refused.Load() > 0 {
		// The call may have been refused just when the budget became quiet.
		m.queue.set(b, min(b.due, now))
		return false
	}
	return b.isQuiet() && packed.Tokens(b.packed.Load()).Tokens() == b.expected() && now.Sub(b.lastCall) > maxLife
}

// Release says that nobody will take tokens any more: what is left is handed back. Take
// refuses from now on.
func (b *Budget) Release(now clock.Instant) {
	m := b.member
	m.mu.Lock()
	defer m.unlock(now)
	if b.released.Load() {
		return
	}
	b.count(now)
	b.released.Store(true)
	b.drop(now)
	b.write(-b.debt, b.end(now), true)
	b.debt = 0
	if m.running {
		m.queue.set(b, now)
	} else {
		m.removeBudget(b) // nobody can hand back anything
	}
}

// Forget releases the budget if a new one would do the same: nothing is leased, owed or
// denied, and what has passed does not matter any more. It says whether it did: then Take
// refuses, and another budget of the limit takes over. It locks nothing if there is nothing
// to forget.
func (b *Budget) Forget(now clock.Instant) bool {
	if !b.IsNew(now) {
		return false
	}
	m := b.member
	m.mu.Lock()
	defer m.unlock(now)
	w := packed.Tokens(b.packed.Load())
	if b.refused.Load() > 0 {
		// The call may have been refused just when the budget became quiet.
		m.queue.set(b, min(b.due, now))
		return false
	}
	if b.released.Load() || !b.IsNew(now) || !w.IsQuiet() || w.Tokens() != b.expected() {
		return false
	}
	b.released.Store(true) // before calls find nothing
	if !b.packed.CompareAndSwap(uint64(w), uint64(packed.Pack(now.Add(packed.Forever), true, 0))) {
		b.released.Store(false) // a call came
		return false
	}
	b.debt = 0
	m.removeBudget(b)
	return true
}

// IsNew says whether a new budget would probably do the same. It locks nothing.
func (b *Budget) IsNew(now clock.Instant) bool {
	return packed.Tokens(b.packed.Load()).IsQuiet() && clock.Instant(b.newAt.Load()) <= now
}

// IsReleased says whether the budget was released, so that Take refuses.
func (b *Budget) IsReleased() bool { return b.released.Load() }

// newFrom returns from when on the budget is as new, unless a call comes: never if that
// cannot be said.
func (b *Budget) newFrom() clock.Instant {
	if !b.isQuiet() || b.outage.Active || b.owed > 0 || b.terms.Limit == 0 {
		return never
	}
	return max(b.lastCall.Add(maxLife), b.lastPass.Add(b.evenTime()), b.retryAt)
}
