package flow

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// Waiter is a call in a queue. It can be used for one call after another.
type Waiter struct {
	wake     func()
	priority rule.Priority

	// The queue's mutex guards what follows.
	state   waiterState
	tokens  int32
	arrived clock.Instant
	turn    Turn // planned for the head, then granted
	place   waitqueue.Node[Waiter]
}

// waiterState says how a waiter stands.
type waiterState uint8

const (
	notQueued waiterState = iota
	queued                // it waits
	granted               // its turn is valid
	refused               // it would have to wait too long
	released              // the rule is gone, or is for other calls
)

// NewWaiter returns a waiter. wake is called when the waiter should call Poll, perhaps
// more often than need be and while the queue is locked: it must neither block nor call
// the queue.
func NewWaiter(wake func()) *Waiter { return &Waiter{wake: wake} }

// WithPriority returns the waiter, which is not in a queue, for calls of a priority. It has
// that of normal calls at first.
func (w *Waiter) WithPriority(p rule.Priority) *Waiter {
	w.priority = p
	return w
}

// join makes the waiter one of a call of n tokens that joins a queue at now.
func (w *Waiter) join(now clock.Instant, n int32) {
	*w = Waiter{wake: w.wake, priority: w.priority, state: queued, tokens: n, arrived: now}
}

// level returns the level of the priority.
func (w *Waiter) level() int { return w.priority.Level() }

// waiterList is the waiters of a queue. The head is the one for which an instant is
// planned. It was the first in the order of package waitqueue when the call before it had
// passed or left, or when it came. A more important call takes its place.
type waiterList struct {
	head   *Waiter
	order  waitqueue.Queue[Waiter]
	total  int64 // tokens that they take
	levels [waitqueue.Levels]levelCount
	mixed  bool // calls of several priorities have waited since the list was empty
}

// levelCount is how many calls of a priority wait, and the tokens that they take.
type levelCount struct{ calls, tokens int64 }

// tokens returns how many tokens the waiting calls take.
func (l *waiterList) tokens() int64 { return l.total }

// overtakesHead says whether a call of that priority would take the place of the head, of
// which there is one.
func (l *waiterList) overtakesHead(p rule.Priority) bool {
	if !l.mixed && p <= l.head.priority {
		return false
	}
	return l.order.WouldOvertake(p.Level())
}

// between returns how many tokens those calls take that pass after the head and before a
// call of that priority which comes now, as far as that is known: the shares of less
// important calls are as large as these calls are on average.
func (l *waiterList) between(p rule.Priority) int64 {
	if !l.mixed && p == l.head.priority {
		return l.total - int64(l.head.tokens)
	}
	level := p.Level()
	var before, below levelCount
	for i := range l.levels {
		if to := &below; i < level {
			to.add(l.levels[i].calls, l.levels[i].tokens)
		} else {
			before.add(l.levels[i].calls, l.levels[i].tokens)
		}
	}
	shares := min(l.order.SharedPlaces(before.calls), below.calls)
	if l.head.level() < level {
		below.add(-1, -int64(l.head.tokens))
		shares--
	} else {
		before.tokens -= int64(l.head.tokens)
	}
	if shares > 0 {
		before.tokens += (below.tokens*shares + below.calls - 1) / below.calls
	}
	return before.tokens
}

func (c *levelCount) add(calls, tokens int64) { c.calls, c.tokens = c.calls+calls, c.tokens+tokens }

// push adds a waiter, which may become the head. It returns whether there are now calls of
// several priorities for the first time.
func (l *waiterList) push(w *Waiter) (becameMixed bool) {
	if l.head == nil {
		l.head = w
	} else {
		becameMixed = !l.mixed && l.head.priority != w.priority
		l.mixed = l.mixed || becameMixed
		if l.mixed && l.overtakesHead(w.priority) {
			l.head = w
		}
	}
	l.order.Push(w, &w.place, w.level())
	l.levels[w.level()].add(1, int64(w.tokens))
	l.total += int64(w.tokens)
	return becameMixed
}

// overtake notes that a call passed at once that would have been the head.
func (l *waiterList) overtake() {
	l.order.Overtake()
	l.head = l.order.First()
}

// remove takes a waiter out of the list. served tells that it passes.
func (l *waiterList) remove(w *Waiter, served bool) {
	if served {
		l.order.Serve(&w.place)
	} else {
		l.order.Remove(&w.place)
	}
	l.levels[w.level()].add(-1, -int64(w.tokens))
	l.total -= int64(w.tokens)
	if w == l.head {
		l.head = l.order.First()
	}
	l.mixed = l.mixed && l.head != nil
}

// inOrder returns the waiters in the order in which they pass if no other call comes.
func (l *waiterList) inOrder() []*Waiter {
	list := make([]*Waiter, 0, l.order.Len())
	if l.head == nil {
		return list
	}
	list = append(list, l.head)
	for w := range l.order.Order() {
		if w != l.head {
			list = append(list, w)
		}
	}
	return list
}

// last returns the waiter that passes last if no other call comes.
func (l *waiterList) last() *Waiter {
	if l.mixed {
		list := l.inOrder()
		return list[len(list)-1]
	}
	return l.order.Last()
}
