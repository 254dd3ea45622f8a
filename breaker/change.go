package breaker

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
)

// change is a change of state that has to be reported.
type change struct {
	report   func(at clock.Instant, from, to string)
	at       clock.Instant
	from, to string
}

// unlock reports the changes of state and releases the mutex. Changes are reported one
// at a time, in their order and without the mutex. If another goroutine is reporting, it
// reports these changes too.
func (b *breaker) unlock() {
	defer b.mu.Unlock()
	if b.reporting {
		return
	}
	b.reporting = true
	defer func() { b.reporting = false }() // also when a report panics
	for len(b.changes) > 0 {
		next := b.changes[0]
		b.changes = slices.Delete(b.changes, 0, 1)
		b.report(next)
	}
}

// report reports one change, and releases the mutex meanwhile.
func (b *breaker) report(c change) {
	b.mu.Unlock()
	defer b.mu.Lock()
	c.report(c.at, c.from, c.to)
}
