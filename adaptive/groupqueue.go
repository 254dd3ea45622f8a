package adaptive

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// join has a call of a class wait.
func (g *group) join(v *version, of *class, c *rule.Call, patience rule.Patience) (rule.Waiter, rule.Decision) {
	g.lock(c.Now)
	defer g.unlock()
	if !g.activate(v, c.Now) || of.group.Load() != g {
		return nil, rule.Stale
	}
	g.markFull(c.Now)
	g.turned = false
	g.control.Arrived()
	g.test(c.Now)
	if of.group.Load() != g { // the test has found what its class is short of
		return nil, rule.Stale
	}
	level := levelOf(c.Priority())
	isLight := g.isLight(of, level, c.Now)
	if (g.queue.total == 0 || isLight) && g.begin(of, c.Now, g.places(isLight)) {
		g.openIfIdle(c.Now)
		return nil, rule.Pass
	}
	w := &waiter{group: g, class: of, since: patience.Since, level: level}
	w.Begin(w, patience.Wake)
	if state := g.shed.Load(); state.Active() {
		w.seen = true
		w.below = g.shed.Standing(state, c, uint64(c.Now)) == shed.Below && g.isFullOf(of, c.Now)
	}
	if g.mayNotWait(w, c.Now) || patience.Until <= c.Now || g.waitsUntil(w) <= c.Now {
		g.shed.Refuse(c.Priority(), w.seen)
		return nil, rule.Block
	}
	g.queue.push(w, c.Now, &g.queueLimit)
	g.mark(of, c.Now)
	g.displace(w.level, c.Now)
	g.serve(c.Now)
	return w, rule.Wait
}

// mayNotWait says whether a call is refused: too many wait of its priority and above, and of its
// class.
func (g *group) mayNotWait(w *waiter, now clock.Instant) bool {
	return g.verdict(w.level, g.waiting(w.level))&w.refusedBy() != 0 && g.isFullOf(w.class, now)
}

// waiting returns how many calls of a level and of more important ones wait.
func (g *group) waiting(level int) int {
	sum := 0
	for i := range level + 1 {
		sum += g.queue.size[i]
	}
	return sum
}

// verdict says which calls of a level may not wait, given how many of that level and of more
// important ones do.
func (g *group) verdict(level, waiting int) uint64 {
	most := g.queueLimit.most[level]
	switch {
	case g.control.Testing():
		if waiting < g.current.rule.MaxLimit {
			return 0
		}
		return refuseAbove | refuseBelow
	case float64(waiting) < most:
		return 0
	case !g.shed.Load().Active():
		return refuseAbove | refuseBelow
	case float64(waiting) >= preferred*most && g.queue.below[level] == 0:
		return refuseAbove | refuseBelow
	}
	return refuseBelow
}

// isFullOf says whether as many calls of a class wait as may.
func (g *group) isFullOf(c *class, now clock.Instant) bool {
	return float64(c.queued)*c.cost() >= c.stands.room(now, c, &g.queueLimit, len(g.queue.classes))
}

// mark publishes whether calls of a class may wait.
func (g *group) mark(c *class, now clock.Instant) {
	refuses := uint32(0)
	if g.isFullOf(c, now) {
		refuses = 1<<levels - 1
	}
	if c.refuses.Load() != refuses {
		c.refuses.Store(refuses)
	}
}

// displace refuses calls that are too many since one of a level has come: those of less
// important levels first, of the class that has most.
func (g *group) displace(level int, now clock.Instant) {
	if g.control.Testing() {
		return
	}
	active := g.shed.Load().Active()
	for i, waiting := level, g.waiting(level); i < levels; i++ {
		if i > level {
			waiting += g.queue.size[i]
		}
		most := math.Ceil(g.queueLimit.most[i])
		for waiting > 0 && float64(waiting) > most && g.queue.below[i] > 0 {
			g.refuse(g.queue.last(i), now)
			waiting--
		}
		if active {
			most = math.Ceil(preferred * g.queueLimit.most[i])
		}
		for g.queue.size[i] > 0 && float64(waiting) > most {
			g.refuse(g.queue.last(i), now)
			waiting--
		}
	}
}

// refuse ends the wait of a call.
func (g *group) refuse(w *waiter, now clock.Instant) {
	g.shed.Refuse(priorityOf(w.level), w.seen)
	g.dequeue(w, now)
	w.Refuse()
	w.Wake()
}

// dequeue takes a waiter out of the queue.
func (g *group) dequeue(w *waiter, now clock.Instant) {
	g.queue.remove(w, now, &g.queueLimit)
	g.mark(w.class, now)
}

// releaseCall ends the wait of a call, which asks anew.
func (g *group) releaseCall(w *waiter, now clock.Instant) {
	g.dequeue(w, now)
	w.Release()
	w.Wake()
}

// releaseCalls ends all waits: the rule is gone, or is one for others.
func (g *group) releaseCalls() {
	for g.queue.total > 0 {
		g.releaseCall(g.queue.next(), g.advanced)
	}
}

// wakeAll has all waiters look again for how long they may wait.
func (g *group) wakeAll() {
	for _, c := range g.queue.classes {
		for _, list := range c.waiting {
			for w := list.oldest; w != nil; w = w.newer {
				w.Wake()
			}
		}
	}
}

// waitsUntil returns when the wait of a call ends. During a test calls wait until it raises the limit or shows something, at
// the greatest limit as long as they may since it is reached.
func (g *group) waitsUntil(w *waiter) clock.Instant {
	if !g.control.Testing() {
		return w.since.Add(g.queueLimit.longest + g.queueLimit.longest/2)
	}
	since, atMost := g.control.AtMost()
	if !atMost {
		return math.MaxInt64
	}
	longest := g.current.rule.MaxDelay
	return max(w.since, since).Add(longest + longest/2)
}

// endAtDeadline returns how long a call may still wait; 0 if its wait has ended. During a test
// it returns when the test may go on.
func (g *group) endAtDeadline(w *waiter, now clock.Instant) time.Duration {
	g.lock(now)
	defer g.unlock()
	if g.control.Testing() {
		g.test(now)
		g.serve(now)
	}
	if !w.Waits() {
		return 0
	}
	if remaining := g.waitsUntil(w).Sub(now); remaining > 0 {
		if g.control.Testing() {
			remaining = min(remaining, max(g.patience()/2, time.Millisecond))
		}
		return remaining
	}
	g.refuse(w, now)
	g.openIfIdle(now)
	return 0
}

func (g *group) leaveQueue(w *waiter, now clock.Instant) {
	g.lock(now)
	defer g.unlock()
	if w.Waits() {
		g.dequeue(w, now)
		w.End()
		g.openIfIdle(now)
	}
}

// serve lets waiting calls pass as far as the limit allows, and opens the group if it is
// not reached.
func (g *group) serve(now clock.Instant) {
	g.measureIfDrained(now)
	for w := g.queue.next(); w != nil; w = g.queue.next() {
		if now > g.waitsUntil(w) {
			g.refuse(w, now)
			continue
		}
		if !g.begin(w.class, now, g.atMost(g.limit)) {
			return
		}
		g.queue.take(w)
		g.dequeue(w, now)
		w.Grant(rule.Ticket(g.index))
		w.Wake()
	}
	g.openIfIdle(now)
}

// isLight says whether a class has so few calls under way that others' calls should not make one of a level
// wait: less than half of its share of the limit, if none waits that is more important, or none if it usually has
// hardly any.
func (g *group) isLight(c *class, level int, now clock.Instant) bool {
	if len(g.classes) == 1 || c.stands.over(now, c, &g.queueLimit) {
		return false
	}
	share, n := float64(g.limit)/float64(max(g.control.Classes(), 1)), float64(c.underWay())
	return share >= 2 && n < share/2 && !g.moreImportantWaits(level) || n == 0 && c.recent.known > 0 && c.recent.held < share/alone
}

// moreImportantWaits says whether a call waits that is more important than those of a level.
func (g *group) moreImportantWaits(level int) bool {
	return slices.ContainsFunc(g.queue.size[:level], func(calls int) bool { return calls > 0 })
}

// places returns how many calls may be under way for another one to pass, which may be of a class with few.
func (g *group) places(isLight bool) uint64 {
	if isLight {
		return g.atMost(g.limit + g.limit/4)
	}
	return g.atMost(g.limit)
}
