package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// beginWindow begins another window.
func (g *gate) beginWindow(now clock.Instant) {
	g.begun = g.read(now)
	g.fullTime, g.fullAt = 0, now
	least, most, _ := g.control.Need()
	g.overdue = now.Add(most)
	g.due.Store(int64(now.Add(least)))
}

// closeWindow hands the window to the control if it is complete.
func (g *gate) closeWindow(now clock.Instant) {
	w := g.read(now).since(g.begun)
	least, most, ends := g.control.Need()
	if w.Ends > 0 {
		g.lastUsed = min(now, g.overdue)
	}
	switch {
	case w.Length < 0 || w.Length > time.Minute || w.Calls > (callsMask+1)*w.Length.Seconds():
		g.beginWindow(now) // the clock has been set, or nothing has happened for long
		return
	case w.Length < least:
		return
	case w.Length < most && w.Ends < ends:
		g.due.Store(int64(now.Add(least / 8)))
		return
	}
	w.Full = g.fullTime
	if g.isFull {
		w.Full += max(now.Sub(g.fullAt), 0)
	}
	w.Over = g.queueLimit.over()
	g.control.Close(w)
	g.moveThreshold(now)
	g.beginWindow(now)
	g.apply(now)
}

// moveThreshold has the threshold divide calls into as many as pass and those that do not,
// while more come than can pass.
func (g *gate) moveThreshold(now clock.Instant) {
	active := g.shed.Load().Active()
	switch {
	case !active && g.queueLimit.over():
		g.share = 1
		g.shed.Start(now)
	case active && g.queueLimit.calm():
		g.shed.Stop()
		return
	case !active || now.Sub(g.shedAt.at) < moveEvery:
		return
	}
	after := g.read(now)
	total, _ := g.shed.Totals()
	passed, blocked := float64((after.ends-g.shedAt.ends)&endsMask), float64(total-g.refused)
	g.shedAt, g.refused = after, total
	if !active || passed+blocked == 0 {
		return
	}
	g.share += (passed/(passed+blocked) - g.share) / 2
	g.shed.Move(now, passingShare*g.share)
}

const (
	// moveEvery is the least time between moves of the threshold.
	moveEvery = 500 * time.Millisecond

	// passingShare is how many calls are above the threshold, of those that can pass. If
	// all were, they would have to wait for each other.
	passingShare = 0.9
)

// apply puts the limit of the control in force.
func (g *gate) apply(now clock.Instant) {
	g.limit = uint64(math.Ceil(g.control.Limit()))
	base := g.control.Baseline()
	rate := g.control.Rate()
	maxDelay := g.current.rule.MaxDelay
	if base == 0 {
		base = maxDelay.Seconds() / 10
		rate = float64(g.limit) / base
	}
	g.late.Store(int64(g.control.Late() * float64(time.Second)))
	g.queueLimit.configure(base, g.control.Variation(), rate, maxDelay)
	if g.underWay() >= g.limit {
		g.markFull(now)
	}
	g.serve(now)
}

// measureIfDrained begins the measurement of a probe when few enough calls are under way.
func (g *gate) measureIfDrained(now clock.Instant) {
	if g.control.Draining() && g.underWay() <= g.limit {
		g.control.Drained()
		g.beginWindow(now)
	}
}

// activate puts a version in force if it is newer than the one that is. It returns whether
// the version is in force.
func (g *gate) activate(l *latencyLimiter, now clock.Instant) bool {
	if l.version > g.current.version {
		g.replace(l, now)
	}
	return l.version == g.current.version && !g.retired
}

// replace puts a newer version of the rule in force. The limit stays as far as the new
// version allows it, and so do waiting calls.
func (g *gate) replace(l *latencyLimiter, now clock.Instant) {
	former := g.current.rule
	g.current, g.retired = l, false
	if l.rule.Shadow || l.rule.Origin != former.Origin || l.rule.Inbound != former.Inbound {
		g.finishAll(released) // the rule may not be one for them any more
	}
	g.control.SetBounds(l.rule.MinLimit, l.rule.MaxLimit)
	g.apply(now)
	if l.rule.MaxDelay < former.MaxDelay {
		g.queue.wakeAll() // their waits end sooner
	}
}
