// Package statechange reports the changes of the state of a limiter: one at a time, in their
// order, and without the mutex of the limiter, so that whoever hears of one may ask the
// limiter.
package statechange

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/clock"
)

// Queue is the changes of one limiter that are not reported yet. The zero value is empty. The
// mutex of the limiter guards it.
type Queue struct {
	changes   []change
	reporting bool // by a goroutine
}

type change struct {
	report            func(at clock.Instant, from, to, because string)
	at                clock.Instant
	from, to, because string
}

// Grow makes space for so many changes, so that adding them allocates nothing.
func (q *Queue) Grow(n int) { q.changes = slices.Grow(q.changes, n) }

// Add adds a change, and how it is reported.
func (q *Queue) Add(report func(at clock.Instant, from, to, because string), at clock.Instant, from, to, because string) {
	q.changes = append(q.changes, change{report, at, from, to, because})
}

// Discard forgets all changes.
func (q *Queue) Discard() { q.changes = q.changes[:0] }

// Unlock reports all changes and releases the mutex, which is held. While another goroutine
// is reporting, that one reports these changes too.
func (q *Queue) Unlock(mu *sync.Mutex) {
	defer mu.Unlock()
	if q.reporting {
		return
	}
	q.reporting = true
	q.reportAll(mu)
}

// reportAll reports all changes, also those behind one whose report panics.
func (q *Queue) reportAll(mu *sync.Mutex) {
	defer func() {
		if len(q.changes) > 0 {
			q.reportAll(mu)
		}
		q.reporting = false
	}()
	for len(q.changes) > 0 {
		next := q.changes[0]
		q.changes = slices.Delete(q.changes, 0, 1)
		next.run(mu)
	}
}

// run reports the change, and releases the mutex meanwhile.
func (c change) run(mu *sync.Mutex) {
	mu.Unlock()
	defer mu.Lock()
	c.report(c.at, c.from, c.to, c.because)
}
