package fleet

import "github.com/penstock-go/penstock/clock"

// control is what a member knows of a budget and decides about it.
type control struct {
	terms    Terms
	mode     Mode
	onOutage OnOutage
}

// wakeUp has the next step look at a budget that was quiet.
func (m *Member) wakeUp(b *Budget) {
	for {
		b.nextWoken = m.woken.Load()
		if m.woken.CompareAndSwap(b.nextWoken, b) {
			break
		}
	}
	m.signal()
}

// signal tells whoever steps the member that it is due earlier.
func (m *Member) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Change has the limit go on with other terms, of the same key and mode. What was leased stays.
func (b *Budget) Change(terms Terms, onOutage OnOutage, now clock.Instant) {
	b.control.terms, b.control.onOutage = terms, onOutage
}

// Status tells how the limit is at now.
func (b *Budget) Status(now clock.Instant) LimitStatus {
	return LimitStatus{Key: b.control.terms.Key}
}

// Idle says whether nothing was asked of late, nothing is leased and nothing is owed.
func (b *Budget) Idle(now clock.Instant) bool { return true }

// Release says that nobody will take tokens any more: what is left is handed back. Take
// refuses from now on.
func (b *Budget) Release(now clock.Instant) {}
