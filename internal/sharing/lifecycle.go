package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// setMost sets the most that a call can take by the terms.
func (b *Budget) setMost() {
	most := b.terms.Limit
	if b.mode == fleet.ModeLease && b.terms.Limit > 0 {
		// What a bucket does not hold can be granted for later.
		most = b.terms.Burst + b.terms.PerSecond()*maxLife.Seconds()
	}
	b.most.Store(int64(min(most, maxTokens/4)))
}

// Change has the limit go on with other terms, of the same key. What was leased stays, unless
// the limit is 0 now.
func (b *Budget) Change(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) {
	m := b.member
	m.mu.Lock()
	defer m.unlock(now)
	b.count(now)
	if terms != b.terms {
		b.isFull, b.retryAt, b.bucketEnd, b.crowd = false, 0, 0, crowd{}
	}
	if b.mode == fleet.ModeWindow && (terms.Window != b.terms.Window || terms.Buckets != b.terms.Buckets) {
		b.passes = b.passes.resized(terms.Window, terms.Buckets, now)
		b.outage.owed = b.outage.owed.resized(terms.Window, terms.Buckets, now)
		b.portion, b.told = portion{}, windowUse{}
	}
	b.terms = terms
	b.setMost()
	if terms.Limit == 0 {
		b.drop(now)
	}
	if b.onOutage = onOutage; b.outage.active {
		b.outage.decideBy(onOutage, &terms, m.sharers(&b.outage, onOutage), &b.passes, m.random.Float64())
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
	return b.isQuiet() && packedTokens(b.packed.Load()).tokens() == b.expected() && now.Sub(b.lastCall) > maxLife
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
