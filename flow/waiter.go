package flow

import "github.com/penstock-go/penstock/clock"

// Waiter is a call in a queue. It can be used for one call after another.
type Waiter struct {
	wake func()

	// The queue's mutex guards what follows.
	state       waiterState
	tokens      int32
	arrived     clock.Instant
	since       clock.Instant // the call's wait began: when it arrived here, or in another queue
	reservation Reservation   // planned for the head, then granted
	next, prev  *Waiter

	// Of a call that has to pass several queues at one instant:
	joint    bool          // it passes all queues at once, see passAll, and is not advanced here
	deadline clock.Instant // by which it has to pass
	expected clock.Instant // when it may pass all of them, if that is known
}

// waiterState says how a waiter stands.
type waiterState uint8

const (
	notQueued waiterState = iota
	queued                // it waits
	granted               // its reservation is valid
	refused               // it would have to wait too long
	released              // the rule is gone, or is for other calls
)

// NewWaiter returns a waiter. wake is called when the waiter should call Poll, perhaps
// more often than need be and while the queue is locked: it must neither block nor call
// the queue.
func NewWaiter(wake func()) *Waiter { return &Waiter{wake: wake} }

// waiterList is the waiters of a queue, the first to be served at its head.
type waiterList struct {
	head, tail *Waiter
	behind     int64 // tokens of those behind the head
}

// tokens returns how many tokens the waiting calls take.
func (l *waiterList) tokens() int64 {
	if l.head == nil {
		return 0
	}
	return int64(l.head.tokens) + l.behind
}

// push appends a waiter.
func (l *waiterList) push(w *Waiter) {
	if l.head == nil {
		l.head, l.tail = w, w
		return
	}
	w.prev, l.tail.next, l.tail = l.tail, w, w
	l.behind += int64(w.tokens)
}

// remove takes a waiter out of the list.
func (l *waiterList) remove(w *Waiter) {
	if w == l.head {
		l.head = w.next
		if l.head != nil {
			l.behind -= int64(l.head.tokens)
		}
	} else {
		w.prev.next = w.next
		l.behind -= int64(w.tokens)
	}
	if w == l.tail {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
}
