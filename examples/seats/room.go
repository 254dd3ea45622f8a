package seats

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// room is the seats and the queue before them. When its mutex is released, no seat is free while a call waits.
type room struct {
	mu      sync.Mutex // guards all else, and the waiters
	inForce *limiter   // the newest version that a call has asked, or that was activated
	gone    bool       // inForce was retired
	taken   int
	queue   []*waiter // who came first stands first
}

// waiter is a call in the queue, or one that has left it and was not polled since.
type waiter struct {
	room  *room
	until clock.Instant
	wake  func()
	says  rule.Decision // Wait in the queue, Pass with a seat, Stale if the rule is not for it any more
}

// activate brings a version in force if it is newer. It returns whether it is in force.
func (r *room) activate(l *limiter) bool {
	if before := r.inForce; l.version > before.version {
		r.inForce, r.gone = l, false
		if l.rule.Shadow || l.rule.Origin != before.rule.Origin {
			r.dismiss()
		}
		r.seat()
	}
	return l == r.inForce && !r.gone
}

// sit takes a seat if one is free.
func (r *room) sit() bool {
	if r.taken >= r.inForce.rule.Seats {
		return false
	}
	r.taken++
	return true
}

// rise frees a seat, for the call that has waited the longest.
func (r *room) rise() {
	r.taken--
	r.seat()
}

// seat gives calls that wait the seats that are free.
func (r *room) seat() {
	for len(r.queue) > 0 && r.sit() {
		r.end(r.queue[0], rule.Pass)
	}
}

// dismiss ends all waits: the calls ask again by the rules that are for them.
func (r *room) dismiss() {
	for len(r.queue) > 0 {
		r.end(r.queue[0], rule.Stale)
	}
}

// end takes a call out of the queue and wakes it.
func (r *room) end(w *waiter, says rule.Decision) {
	at := slices.Index(r.queue, w)
	r.queue = slices.Delete(r.queue, at, at+1)
	w.says = says
	w.wake()
}

// Poll says whether the call still waits.
func (w *waiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	if w.says == rule.Wait {
		if left := w.until.Sub(now); left > 0 {
			return 0, left, rule.Wait
		}
		w.room.end(w, rule.Block)
	}
	return 0, 0, w.says
}

// Leave ends the wait of a call that has given up: it may have got a seat meanwhile.
func (w *waiter) Leave(clock.Instant) {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	switch w.says {
	case rule.Wait:
		w.room.end(w, rule.Block)
	case rule.Pass:
		w.room.rise()
	}
}
