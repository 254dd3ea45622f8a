// Package waitqueue is the order in which waiting calls are served: by priority, with a
// share for the less important ones, and within a priority by the time at which they came.
//
// The rule is exact. The next place goes to a call of the highest priority that waits.
// When calls of several priorities have waited for [Share] - 1 places in a row, and all of
// these went to the highest priority, the next place goes to the first call among all that
// have a lower one. So the less important calls get one place in [Share] for as long as
// they wait together with more important ones.
//
// Within a priority, and among those that get their share, the oldest call is the first, so
// every call comes to be the first; with [Queue.NewestFirst] it is the newest one, and old
// ones may never be. While all calls have one priority, that is the whole order.
//
// With [Queue.ShareFairly] tenants get shares within a priority, in the order of package fairqueue.
//
// A limiter embeds a [Node] in each of its waiters. Nothing is allocated for them.
package waitqueue

import (
	"iter"
	"math/bits"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// Levels is how many priorities there are. A queue numbers them from 0, the lowest, as
// rule.Priority.Level does.
const Levels = 5

// Share says how many places there are for one that goes to a call of less than the highest
// priority, while calls of several priorities wait.
const Share = 8

// levelBits is how many bits a level has.
const levelBits = 3

// Queue is the waiting calls of one limiter, of which W is what the limiter knows of a call.
// The zero value is an empty queue. A Queue is not safe for concurrent use: the lock of the
// limiter guards it.
type Queue[W any] struct {
	// NewestFirst serves the call first that came last, within a priority. It may change
	// while calls wait.
	NewestFirst bool

	occupied   uint8 // a bit for each level at which calls wait; the highest bit is the highest priority
	passedOver uint8 // places in a row that went to the highest priority while a lower one waited
	length     int
	arrivals   uint64 // calls that have ever joined
	levels     [Levels]level[W]
	remembers  int // tenants, by each fair order of a level; 0 if tenants have no shares
	flood      int // unknown tenants that are a flood at a level
}

// level is the calls of one priority that wait. Those that joined while tenants had no shares are in
// the list, the others in the fair order. Of the two calls that would be the first of them, that is the
// first which came first: so calls keep their order when the way of serving changes.
type level[W any] struct {
	list[W]
	fair *fairqueue.Queue[Node[W]] // nil until the first call joins it
}

// Node is the place of one call in a queue. The zero value is in none. It can be used
// again when it has left the queue.
type Node[W any] struct {
	waiter       *W
	newer, older *Node[W]
	order        uint64 // the number of the call in the order of arrivals, and in the low bits its level
	fair         fairqueue.Node[Node[W]]
}

func (n *Node[W]) level() int { return int(n.order & (1<<levelBits - 1)) }

// Len returns how many calls wait.
func (q *Queue[W]) Len() int { return q.length }

// Lowest returns the lowest level at which calls wait. It may be called only while some do.
func (q *Queue[W]) Lowest() int { return bits.TrailingZeros8(q.occupied) }

// Push has a call join the queue as the newest of its level. The node is in no queue.
func (q *Queue[W]) Push(w *W, n *Node[W], level int) {
	q.arrivals++
	n.waiter, n.order = w, q.arrivals<<levelBits|uint64(level)
	q.levels[level].push(n)
	q.occupied |= 1 << level
	q.length++
}

// First returns the call that gets the next place; nil if none waits.
func (q *Queue[W]) First() *W {
	if q.occupied == 0 {
		return nil
	}
	return q.firstNode().waiter
}

// firstNode returns the node of the call that First returns. There is one.
func (q *Queue[W]) firstNode() *Node[W] {
	top := q.top()
	if q.passedOver < Share-1 || q.occupied == 1<<top {
		return q.levels[top].first(q.NewestFirst)
	}
	return q.firstBelow(top)
}

// Last returns the call that is the first to go when the queue is too long: the last one,
// in the order of the queue, of the lowest priority that waits; nil if none waits.
func (q *Queue[W]) Last() *W {
	if q.occupied == 0 {
		return nil
	}
	l := &q.levels[q.Lowest()]
	if l.sharesFairly() {
		return l.fair.Last().waiter
	}
	return l.end(!q.NewestFirst).waiter
}

// Serve takes the call out of the queue that First has returned: it has got a place.
func (q *Queue[W]) Serve(n *Node[W]) {
	q.count(n)
	q.Remove(n)
}

// count counts the place that a call gets.
func (q *Queue[W]) count(n *Node[W]) {
	switch top := q.top(); {
	case n.level() < top, q.occupied == 1<<top:
		q.passedOver = 0
	default:
		q.passedOver++
	}
}

// Remove takes a call out of the queue that has got no place.
func (q *Queue[W]) Remove(n *Node[W]) {
	level := n.level()
	l := &q.levels[level]
	if n.fair.Waits() {
		l.fair.Remove(&n.fair)
	} else {
		l.remove(n)
	}
	q.left(level)
}

// left notes that a call of a level has left the queue.
func (q *Queue[W]) left(level int) {
	if l := &q.levels[level]; l.oldest == nil && !l.sharesFairly() {
		q.occupied &^= 1 << level
	}
	q.length--
}

// All yields the calls that wait, the most important first, the oldest first within a
// priority, and within a tenant if tenants have shares. The call that it has yielded may be removed.
func (q *Queue[W]) All() iter.Seq[*W] {
	return func(yield func(*W) bool) {
		for level := Levels - 1; level >= 0; level-- {
			for n := q.levels[level].oldest; n != nil; {
				next := n.newer
				if !yield(n.waiter) {
					return
				}
				n = next
			}
			if !q.levels[level].allFair(yield) {
				return
			}
		}
	}
}

// top returns the highest level at which calls wait.
func (q *Queue[W]) top() int { return bits.Len8(q.occupied) - 1 }

// firstBelow returns the first call among all of lower levels, of which there is one.
func (q *Queue[W]) firstBelow(level int) *Node[W] {
	var first *Node[W]
	for i := range level {
		n := q.levels[i].first(q.NewestFirst)
		if n != nil && (first == nil || n.order > first.order == q.NewestFirst) {
			first = n
		}
	}
	return first
}

// list is the waiting calls of one level in the order in which they came.
type list[W any] struct{ oldest, newest *Node[W] }

// end returns the newest or the oldest call.
func (l *list[W]) end(newest bool) *Node[W] {
	if newest {
		return l.newest
	}
	return l.oldest
}

func (l *list[W]) push(n *Node[W]) {
	n.older = l.newest
	if l.newest == nil {
		l.oldest = n
	} else {
		l.newest.newer = n
	}
	l.newest = n
}

func (l *list[W]) remove(n *Node[W]) {
	if n.older == nil {
		l.oldest = n.newer
	} else {
		n.older.newer = n.newer
	}
	if n.newer == nil {
		l.newest = n.older
	} else {
		n.newer.older = n.older
	}
	n.newer, n.older = nil, nil
}
