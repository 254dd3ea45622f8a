package adaptive

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// queue is the calls of a group that wait: by their levels, then by turns of their classes, and
// each class in the order in which they came.
type queue struct {
	size    [levels]int
	below   [levels]int // of these, calls that stand below the threshold
	total   int
	classes []*class // that have calls that wait
	virtual float64  // time, in work
}

// waiting is the calls of a class and a level that wait.
type waiting struct {
	oldest, newest *waiter
	size, below    int
}

func (q *queue) push(w *waiter, now clock.Instant, limit *queueLimit) {
	c, of := w.class, &w.class.waiting[w.level]
	if c.queued == 0 {
		q.classes = append(q.classes, c)
	}
	c.stands.advance(now, c, limit, len(q.classes))
	w.older = of.newest
	if of.newest == nil {
		of.oldest = w
	} else {
		of.newest.newer = w
	}
	of.newest = w
	q.count(w, 1)
}

func (q *queue) remove(w *waiter, now clock.Instant, limit *queueLimit) {
	c, of := w.class, &w.class.waiting[w.level]
	c.stands.advance(now, c, limit, len(q.classes))
	if w.older == nil {
		of.oldest = w.newer
	} else {
		w.older.newer = w.newer
	}
	if w.newer == nil {
		of.newest = w.older
	} else {
		w.newer.older = w.older
	}
	w.newer, w.older = nil, nil
	q.count(w, -1)
	if c.queued == 0 {
		q.classes = slices.DeleteFunc(q.classes, func(other *class) bool { return other == c })
	}
}

func (q *queue) count(w *waiter, n int) {
	of := &w.class.waiting[w.level]
	of.size += n
	w.class.queued += n
	q.size[w.level] += n
	q.total += n
	if w.below {
		of.below += n
		q.below[w.level] += n
	}
}

// next returns the waiter that passes next, of the most important level: the oldest one of the
// class whose turn it is; nil if nobody waits.
func (q *queue) next() *waiter {
	for level := range q.size {
		if q.size[level] == 0 {
			continue
		}
		var best *waiter
		var turn float64
		for _, c := range q.classes {
			if w := c.waiting[level].oldest; w != nil && (best == nil || q.turnOf(c) < turn) {
				best, turn = w, q.turnOf(c)
			}
		}
		return best
	}
	return nil
}

// longest returns for how long the call waits that came first.
func (q *queue) longest(now clock.Instant) time.Duration {
	first := now
	for _, c := range q.classes {
		for i := range c.waiting {
			if w := c.waiting[i].oldest; w != nil {
				first = min(first, w.since)
			}
		}
	}
	return now.Sub(first)
}

// turnOf returns when it is the turn of a class, which has saved up a call at most.
func (q *queue) turnOf(c *class) float64 { return max(c.turn, q.virtual-c.cost()) }

// take has the class of a waiter take its turn.
func (q *queue) take(w *waiter) {
	c := w.class
	turn := q.turnOf(c)
	q.virtual = max(q.virtual, turn)
	c.turn = turn + c.cost()
}

// cost returns by how much a call delays the next turn of its class. Classes get equal shares of work, but
// none less than what is usual of it, compared with what is usual of others.
func (c *class) cost() float64 { return c.weight / max(c.share, 1) }

// excess returns how much work of a class waits beyond one call, which each class may have.
func (q *queue) excess(c *class) float64 { return float64(c.queued-1) * c.cost() }

// last returns the waiter of a level to be refused first: the newest one of the class of which
// most work waits, but of those below the threshold if there are any.
func (q *queue) last(level int) *waiter {
	var most *class
	below := q.below[level] > 0
	for _, c := range q.classes {
		of := &c.waiting[level]
		if of.size == 0 || below && of.below == 0 {
			continue
		}
		if most == nil || q.excess(c) > q.excess(most) || q.excess(c) == q.excess(most) && q.turnOf(c) > q.turnOf(most) {
			most = c
		}
	}
	w := most.waiting[level].newest
	for below && !w.below {
		w = w.older
	}
	return w
}

// standing is for how long the queue of a class has been half full, less for how long not: from
// 0 to the span of the group's queueLimit.
type standing struct {
	half time.Duration
	at   clock.Instant
}

// advance takes the time since the last call into account, during which as many calls of the
// class waited as do now.
func (s *standing) advance(now clock.Instant, c *class, limit *queueLimit, classes int) {
	elapsed := now.Sub(s.at)
	s.at = max(s.at, now)
	switch {
	case elapsed <= 0:
	case float64(c.queued)*c.cost() >= limit.share(s.half, classes, c.cost())/2:
		s.half = min(s.half+elapsed, limit.span)
	default:
		s.half = max(s.half-elapsed, 0)
	}
}

// room returns how much work of the class may wait.
func (s *standing) room(now clock.Instant, c *class, limit *queueLimit, classes int) float64 {
	s.advance(now, c, limit, classes)
	return limit.share(s.half, classes, c.cost())
}

// over says whether the queue of the class has been half full for most of the time of late.
func (s *standing) over(now clock.Instant, c *class, limit *queueLimit) bool {
	s.advance(now, c, limit, 1)
	return s.half >= limit.span/2
}
