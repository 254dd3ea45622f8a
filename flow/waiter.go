package flow

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// waiter is a call in a queue.
type waiter struct {
	pending.Call
	caller
	tenant rule.Attribute // whose call it is, for status; nothing if that does not matter

	// The queue's mutex guards what follows.
	tokens  int32
	arrived clock.Instant
	turn    turn // planned for the head, then granted
	place   waitqueue.Node[waiter]
}

// level returns the level of the priority.
func (w *waiter) level() int { return w.priority.Level() }

// waiterList is the waiters of a queue. The head is the one for which an instant is
// planned. It was the first in the order of package waitqueue when the call before it had
// passed or left, or when it came. A more important call takes its place.
type waiterList struct {
	head   *waiter
	order  waitqueue.Queue[waiter]
	total  int64 // tokens that they take
	levels [waitqueue.Levels]levelCount
	most   largest // of the calls that have waited since the list was empty
	mixed  bool    // calls of several priorities, or of tenants, have waited since the list was empty: they may be overtaken
}

// largest is the most that a call takes.
type largest struct {
	tokens int32
	cost   int64
	by     WeightBy
	mixed  bool // costs are of several kinds
}

func (m *largest) add(w *waiter) {
	m.mixed = m.mixed || m.by != w.by && m.tokens > 0
	m.tokens, m.cost, m.by = max(m.tokens, w.tokens), max(m.cost, w.share.Cost), w.by
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
// call of somebody which comes now, as far as that is known: the shares of less
// important calls are as large as these calls are on average. Of the calls of the same priority it is
// never too few, if tenants have shares.
func (l *waiterList) between(who *caller) int64 {
	if !l.mixed && who.priority == l.head.priority {
		return l.total - int64(l.head.tokens)
	}
	level := who.priority.Level()
	var before, below levelCount
	for i := range l.levels {
		if to := &below; i < level {
			to.add(l.levels[i].calls, l.levels[i].tokens)
		} else {
			before.add(l.levels[i].calls, l.levels[i].tokens)
		}
	}
	spared := l.spared(who)
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
	return before.tokens - spared
}

// spared returns how many tokens the calls take of the same priority as a call of somebody, the head left
// out, that certainly pass after it: other tenants have them.
func (l *waiterList) spared(who *caller) int64 {
	if who.share.Weight == 0 || l.most.mixed || who.by != l.most.by {
		return 0
	}
	level := who.priority.Level()
	waiting := l.levels[level].tokens
	if l.head.level() == level {
		waiting -= int64(l.head.tokens)
	}
	work, ok := l.order.Ahead(level, who.share, l.most.cost)
	if !ok {
		return 0
	}
	return max(0, waiting-who.by.tokensOf(work, l.most.tokens))
}

func (c *levelCount) add(calls, tokens int64) { c.calls, c.tokens = c.calls+calls, c.tokens+tokens }

// push adds a waiter, which may become the head. It returns whether those that waited already may be
// overtaken from now on.
func (l *waiterList) push(w *waiter) (becameMixed bool) {
	isFair := w.share.Weight > 0 && l.order.SharesFairly()
	if l.head == nil {
		l.head, l.mixed, l.most = w, isFair, largest{}
	} else {
		becameMixed = !l.mixed && (isFair || l.head.priority != w.priority)
		l.mixed = l.mixed || becameMixed
		if l.mixed && l.overtakesHead(w.priority) {
			l.head = w
		}
	}
	if isFair {
		l.order.PushOf(w, &w.place, w.level(), w.share)
	} else {
		l.order.Push(w, &w.place, w.level())
	}
	l.most.add(w)
	l.levels[w.level()].add(1, int64(w.tokens))
	l.total += int64(w.tokens)
	return becameMixed
}

// overtake notes that a call passed at once that would have been the head.
func (l *waiterList) overtake() {
	l.order.Overtake()
	l.head = l.order.First()
}

// remove takes a waiter out of the list. served tells that it passes: its tenant is charged for it.
func (l *waiterList) remove(w *waiter, served bool) (charge waitqueue.Charge) {
	if served {
		if w.share.Weight > 0 {
			l.order.Learn(w.share.Cost)
		}
		charge = l.order.ServeAt(&w.place, w.share.Cost)
	} else {
		l.order.Remove(&w.place)
	}
	l.levels[w.level()].add(-1, -int64(w.tokens))
	l.total -= int64(w.tokens)
	if w == l.head {
		l.head = l.order.First()
	}
	l.mixed = l.mixed && l.head != nil
	return charge
}

// inOrder returns the waiters in the order in which they pass if no other call comes; if tenants have
// shares, the first of them and the others in any order.
func (l *waiterList) inOrder() []*waiter {
	list := make([]*waiter, 0, l.order.Len())
	if l.head == nil {
		return list
	}
	list = append(list, l.head)
	order := l.order.Order()
	if l.order.Tenants() > 0 {
		order = l.order.All()
	}
	for w := range order {
		if w != l.head {
			list = append(list, w)
		}
	}
	return list
}

// last returns the waiter that passes last if no other call comes.
func (l *waiterList) last() *waiter {
	if l.mixed && l.order.Tenants() == 0 {
		list := l.inOrder()
		return list[len(list)-1]
	}
	return l.order.Last()
}

// turn is what a queue has granted a call: tokens, and the instant at which the
// call may pass. It has four words, which the compiler keeps in registers: that saves
// 30 ns a call.
type turn struct {
	at     clock.Instant
	tokens int32

	// What takes it back. Throttle: the instant at which the call before passes, and
	// the fraction of a nanosecond that this was rounded up by. Token bucket: when the
	// tokens were taken and, if it warms up, how many of them had been stored.
	undoAt     clock.Instant
	undoAmount float64
}
