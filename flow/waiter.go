package flow

import "github.com/penstock-go/penstock/clock"

// Waiter is a call in a queue. It is made once and can be used for one call
// after another.
type Waiter struct {
	wake func()

	// The queue's mutex guards what follows.
	state      waiting
	tokens     int32
	arrived    clock.Instant
	since      clock.Instant // the call's wait began: when it arrived here, or in another queue
	ticket     Ticket        // the turn: planned for the head, then granted
	next, prev *Waiter

	// Of a call that needs a turn of several queues at one instant:
	joint    bool          // it is not granted its turn here, but asks for all of them
	deadline clock.Instant // by which the turn has to come
	expected clock.Instant // when all of the turns may have come, if that is known
}

// waiting is how a waiter stands.
type waiting uint8

const (
	outside  waiting = iota
	inQueue          // it waits
	granted          // its ticket is valid
	refused          // its turn would come after its patience ended
	released         // its queue is no more
)

// NewWaiter returns a waiter. wake is called when the waiter should call Turn,
// perhaps more often than need be and while the queue is locked: it must neither
// block nor call the queue.
func NewWaiter(wake func()) *Waiter { return &Waiter{wake: wake} }

// line is the waiters of a queue, the first to be served at its head.
type line struct {
	head, tail *Waiter
	behind     int64 // tokens of those behind the head
}

// tokens returns how many tokens those in the line take.
func (l *line) tokens() int64 {
	if l.head == nil {
		return 0
	}
	return int64(l.head.tokens) + l.behind
}

// push puts a waiter at the end of the line.
func (l *line) push(w *Waiter) {
	if l.head == nil {
		l.head, l.tail = w, w
		return
	}
	w.prev, l.tail.next, l.tail = l.tail, w, w
	l.behind += int64(w.tokens)
}

// remove takes a waiter out of the line.
func (l *line) remove(w *Waiter) {
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
