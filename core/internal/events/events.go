// Package events keeps the latest of what happened, numbered.
package events

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/lines"
)

// inSecond is how many events of one type are kept of each second.
const inSecond = 50

// Log keeps the latest events. It is safe for concurrent use, once it was initialized.
type Log[E any] struct {
	mu      sync.Mutex // guards what follows; the last one in the order of locks
	most    int
	ring    []E    // once it is full, the oldest is that at next%most
	next    uint64 // how many were added
	firstID uint64
	budgets map[string]*budget
	changed chan struct{} // closed when an event is added; nil while nobody waits
}

// budget bounds the events of a type.
type budget struct {
	second  int64
	kept    int // in the second
	skipped uint64
}

// Init has the log keep so many events. The ID of the first one is about the time, in microseconds, so that
// IDs grow over restarts of the process, too.
func (l *Log[E]) Init(most int, now clock.Instant) {
	l.most, l.budgets = most, make(map[string]*budget)
	l.firstID = uint64(max(time.Microsecond, now.Sub(0)) / time.Microsecond)
}

// Keeps says whether any events are kept.
func (l *Log[E]) Keeps() bool { return l.most > 0 }

// Add adds an event of a type that happened at an instant, unless there were too many of the type. number sets
// its ID, and how many of the type came before it and were not kept.
func (l *Log[E]) Add(kind string, at clock.Instant, event E, number func(e *E, id, skipped uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[kind]
	if b == nil {
		b = new(budget)
		l.budgets[kind] = b
	}
	if second := lines.SecondOf(at); second > b.second || second < b.second-1 { // the clock went back
		b.second, b.kept = second, 0
	}
	if b.kept == inSecond {
		b.skipped++
		return
	}
	b.kept++
	number(&event, l.firstID+l.next, b.skipped)
	b.skipped = 0
	if len(l.ring) < l.most {
		l.ring = append(l.ring, event)
	} else {
		l.ring[l.next%uint64(l.most)] = event
	}
	l.next++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// After returns the events that came after the one of an ID, oldest first: all that are kept for 0. missed says
// that events which came after that ID are gone; they may be those of an earlier process.
func (l *Log[E]) After(after uint64) (events []E, missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.firstID + l.next - uint64(len(l.ring))
	if after >= l.firstID+l.next { // that of an engine whose clock was ahead
		after, missed = 0, true
	}
	from := max(first, after+1)
	for id := from; id < l.firstID+l.next; id++ {
		events = append(events, l.ring[(id-l.firstID)%uint64(l.most)])
	}
	return slices.Clip(events), missed || after != 0 && after+1 < first
}

// Changed returns a channel that is closed when an event is added after the call.
func (l *Log[E]) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Last returns the ID of the latest event, or the one before the first.
func (l *Log[E]) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstID + l.next - 1
}
