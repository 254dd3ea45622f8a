package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// join has a call wait.
func (g *gate) join(l *latencyLimiter, c *rule.Call, patience rule.Patience) (rule.Waiter, rule.Decision) {
	g.lock(c.Now)
	defer g.unlock()
	if !g.activate(l, c.Now) {
		return nil, rule.Stale
	}
	g.markFull(c.Now)
	g.turned = false
	if g.queue.total == 0 && g.begin(c.Now, g.limit) {
		g.openIfIdle(c.Now)
		return nil, rule.Pass
	}
	w := &waiter{gate: g, wake: patience.Wake, since: patience.Since, level: levelOf(c.Priority())}
	if state := g.shed.Load(); state.Active() {
		w.seen = true
		w.below = g.shed.Standing(state, c, uint64(c.Now)) == shed.Below
	}
	if g.verdict(w.level, g.waiting(w.level))&w.refusedBy() != 0 ||
		patience.Until <= c.Now || w.since.Add(g.longestWait()) <= c.Now {
		g.shed.Refuse(c.Priority(), w.seen)
		return nil, rule.Block
	}
	g.queue.push(w)
	g.displace(w.level)
	g.serve(c.Now)
	return w, rule.Wait
}

// waiting returns how many calls of a level and of more important ones wait.
func (g *gate) waiting(level int) int {
	sum := 0
	for i := range level + 1 {
		sum += g.queue.size[i]
	}
	return sum
}

// verdict says which calls of a level may not wait, given how many of that level and of more
// important ones do.
func (g *gate) verdict(level, waiting int) uint64 {
	most := g.queueLimit.most[level]
	switch {
	case float64(waiting) < most:
		return 0
	case !g.shed.Load().Active():
		return refuseAbove | refuseBelow
	case float64(waiting) >= preferred*most && g.queue.below[level] == 0:
		return refuseAbove | refuseBelow
	}
	return refuseBelow
}

// displace refuses calls that are too many since one of a level has come: the newest of less important levels, and of that level those below the threshold.
func (g *gate) displace(level int) {
	active := g.shed.Load().Active()
	for i, waiting := level, g.waiting(level); i < levels; i++ {
		if i > level {
			waiting += g.queue.size[i]
		}
		most := math.Ceil(g.queueLimit.most[i])
		for waiting > 0 && float64(waiting) > most && g.queue.below[i] > 0 {
			g.refuse(g.queue.last(i))
			waiting--
		}
		if active {
			most = math.Ceil(preferred * g.queueLimit.most[i])
		}
		for i > level && g.queue.size[i] > 0 && float64(waiting) > most {
			g.refuse(g.queue.last(i))
			waiting--
		}
	}
}

// refuse ends the wait of a call.
func (g *gate) refuse(w *waiter) {
	g.shed.Refuse(priorityOf(w.level), w.seen)
	g.finish(w, refused)
}

// finish takes a waiter out of the queue and wakes it.
func (g *gate) finish(w *waiter, state uint32) {
	g.queue.remove(w)
	w.state.Store(state)
	w.wake()
}

func (g *gate) finishAll(state uint32) {
	for g.queue.total > 0 {
		g.finish(g.queue.next(), state)
	}
}

// longestWait returns how long a call may wait.
func (g *gate) longestWait() time.Duration { return g.queueLimit.longest + g.queueLimit.longest/2 }

// endAtDeadline returns how long a call may still wait; 0 if its wait has ended.
func (g *gate) endAtDeadline(w *waiter, now clock.Instant) time.Duration {
	g.lock(now)
	defer g.unlock()
	if w.state.Load() != queued {
		return 0
	}
	if remaining := w.since.Add(g.longestWait()).Sub(now); remaining > 0 {
		return remaining
	}
	g.refuse(w)
	g.openIfIdle(now)
	return 0
}

func (g *gate) leaveQueue(w *waiter, now clock.Instant) {
	g.lock(now)
	defer g.unlock()
	if w.state.Load() == queued {
		g.queue.remove(w)
		w.state.Store(left)
		g.openIfIdle(now)
	}
}

// serve lets waiting calls pass as far as the limit allows, and opens the gate if it is
// not reached.
func (g *gate) serve(now clock.Instant) {
	g.measureIfDrained(now)
	for w := g.queue.next(); w != nil; w = g.queue.next() {
		if now > w.since.Add(g.longestWait()) {
			g.refuse(w)
			continue
		}
		if !g.begin(now, g.limit) {
			return
		}
		g.finish(w, granted)
	}
	g.openIfIdle(now)
}
