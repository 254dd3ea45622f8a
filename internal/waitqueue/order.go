package waitqueue

import "iter"

// Order yields the calls in the order in which they get places if no other call joins. The
// queue must not change meanwhile, and tenants have no shares.
func (q *Queue[W]) Order() iter.Seq[*W] {
	return func(yield func(*W) bool) {
		left := *q // of which only the ends of the lists are moved
		for left.occupied != 0 {
			n := left.firstNode()
			left.count(n)
			left.skip(n)
			if !yield(n.waiter) {
				return
			}
		}
	}
}

// skip moves the end of the list on at which a call is served.
func (q *Queue[W]) skip(n *Node[W]) {
	l := &q.levels[n.level()]
	if q.NewestFirst {
		l.newest = n.older
	} else {
		l.oldest = n.newer
	}
	if l.end(q.NewestFirst) == nil {
		q.occupied &^= 1 << n.level()
	}
}

// WouldOvertake says whether a call of that level would be the First if it joined now, for it
// is more important than all that wait or, newest first, as important.
func (q *Queue[W]) WouldOvertake(level int) bool {
	switch {
	case q.occupied == 0:
		return true
	case level == q.top():
		return q.NewestFirst && (q.passedOver < Share-1 || q.occupied == 1<<level)
	}
	return level > q.top() && q.passedOver < Share-1
}

// Overtake notes that a place went to a call that would overtake all others, and did not
// have to join. It counts as one that went to the highest priority while others waited.
func (q *Queue[W]) Overtake() {
	if q.occupied != 0 && q.passedOver < Share-1 {
		q.passedOver++
	}
}

// SharedPlaces returns how many places go to calls of lower priorities, if there are enough
// of them, before so many calls of the highest one and another one have theirs.
func (q *Queue[W]) SharedPlaces(calls int64) int64 {
	return (int64(q.passedOver) + calls) / (Share - 1)
}
