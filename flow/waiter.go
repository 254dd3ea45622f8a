package flow

import "github.com/penstock-go/penstock/clock"

// Waiter is a call in a queue. It is made once and can be used for one call
// after another.
type Waiter struct {
	wake func()

	// The queue's mutex guards what follows.
	state       waiterState
	tokens      int32
	arrived     clock.Instant
	since       clock.Instant // the call's wait began: when it arrived here, or in another queue
	reservation Reservation   // the turn: planned for the head, then granted
	next, prev  *Waiter

	// Of a call that needs a turn of several queues at one instant:
	joint    bool          // it is not granted its turn here, but asks for all of them
	deadline clock.Instant // by which the turn has to come
	expected clock.Instant // when all of the turns may have come, if that is known
}

// waiterState is how a waiter stands.
type waiterState uint8

const (
	notQueued waiterState = iota
	queued                // it waits
	granted               // its ticket is valid
	refused               // its turn would come after its patience ended
	released              // its queue is no more
)

// NewWaiter returns a waiter. wake is called when the waiter should call Turn,
// perhaps more often than need be and while the queue is locked: it must neither
// block nor call the queue.
func NewWaiter(wake func()) *Waiter { return &Waiter{wake: wake} }

// waiterList is the waiters of a queue, the first to be served at its head.
type waiterList struct {
	head, tail *Waiter
	behind     int64 // tokens of those behind the head
}

// tokens returns how many tokens those in the line take.
func (waiters *waiterList) tokens() int64 {
	if waiters.head == nil {
		return 0
	}
	return int64(waiters.head.tokens) + waiters.behind
}

// push puts a waiter at the end of the line.
func (waiters *waiterList) push(w *Waiter) {
	if waiters.head == nil {
		waiters.head, waiters.tail = w, w
		return
	}
	w.prev, waiters.tail.next, waiters.tail = waiters.tail, w, w
	waiters.behind += int64(w.tokens)
}

// remove takes a waiter out of the line.
func (waiters *waiterList) remove(w *Waiter) {
	if w == waiters.head {
		waiters.head = w.next
		if waiters.head != nil {
			waiters.behind -= int64(waiters.head.tokens)
		}
	} else {
		w.prev.next = w.next
		waiters.behind -= int64(w.tokens)
	}
	if w == waiters.tail {
		waiters.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
}
