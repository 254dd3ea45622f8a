package adaptive

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

// add puts a class under the limit of the group.
func (g *group) add(c *class, now clock.Instant) {
	c.begun, c.seen, c.reached = c.read(now), c.read(now), c.read(now)
	c.turn = 0 // virtual times of other groups mean nothing here
	g.classes = append(g.classes, c)
	c.group.Store(g)
}

// remove takes a class out of the group. Its calls that wait look again for their group.
func (g *group) remove(c *class, now clock.Instant) {
	g.classes = slices.DeleteFunc(g.classes, func(other *class) bool { return other == c })
	for c.queued > 0 {
		for i := range c.waiting {
			if w := c.waiting[i].oldest; w != nil {
				g.releaseCall(w, now)
			}
		}
	}
}

// measure has each class take what it did since the window began, and returns what all did:
// ends count by the weight of their class.
func (g *group) measure(now clock.Instant) limit.Window {
	var sum limit.Window
	active := 0
	for _, c := range g.classes {
		w := c.read(now).since(c.begun)
		if !w.FailsLate(c.before) {
			w.Late = 0
		}
		c.did = w
		if w.Calls > 0 {
			active++
		}
		if late := w.WithoutQuick(); w.Late > w.Ends/3 {
			w.Patience = late.Lost / max(late.Failed, 1)
		}
		w.Ends *= c.weight
		w.Failed *= c.weight
		w.Late *= c.weight
		if w.Late > w.Ends/3 {
			w.GivenUp, w.EndedWell = w.Ends, w.Ends-w.Failed
		}
		sum = sum.Plus(w)
	}
	sum.Length = now.Sub(g.begun)
	g.control.SetClasses(active)
	return sum
}

// beginWindow begins another window.
func (g *group) beginWindow(now clock.Instant) {
	g.begun = now
	for _, c := range g.classes {
		c.begun = c.read(now)
	}
	g.fullTime, g.fullAt = 0, now
	least, most, _ := g.control.Need()
	g.overdue = now.Add(most)
	g.windowDue = now.Add(least)
	g.setDue()
}

// setDue says when the end of a call is to look whether something is due.
func (g *group) setDue() { g.due.Store(int64(min(g.windowDue, g.compareDue))) }

// closeWindow compares the classes if that is due, and hands the window to the control if it is complete.
func (g *group) closeWindow(now clock.Instant) {
	if now >= g.compareDue {
		g.compare(now)
	}
	w := g.measure(now)
	least, most, ends := g.control.Need()
	if w.Ended > 0 {
		g.lastUsed = min(now, g.overdue)
	}
	switch {
	case w.Length < 0 || w.Length > time.Minute || w.Calls > (callsMask+1)*w.Length.Seconds():
		g.beginWindow(now) // the clock has been set, or nothing has happened for long
		return
	case !g.control.Limited() && w.Late > w.Ends/2 && w.Ended >= ends: // clients give up: no need to know how long others take
	case w.Length < least:
		return
	case w.Late == w.Ends && w.Ended >= knownEnds/2: // clients give up all calls: how their times vary says nothing
	case w.Length < most && w.Ended < ends:
		g.windowDue = now.Add(least / 8)
		g.setDue()
		return
	}
	g.endWindow(now, w, false)
}

// endWindow hands a window to the control and begins another one. Short says that the group is about
// to be limited. It returns the group that has the control then.
func (g *group) endWindow(now clock.Instant, w limit.Window, short bool) *group {
	w.Full = g.fullTime
	if g.isFull {
		w.Full += max(now.Sub(g.fullAt), 0)
	}
	w.AtLimit, w.Over = g.isFull, g.queueLimit.over()
	w.Slow = g.isSlow()
	g.readProcessor()
	wasLimited := g.control.Limited()
	g.control.Close(w)
	if g.control.ShortOfProcessors() {
		g.limitAsUsual()
	}
	g.learn(w)
	g.moveThreshold(now, w)
	if short {
		g.control.Enforce(now)
	}
	if wasLimited && !g.control.Limited() && g.isFull { // whether the limit is reached is another question now
		g.isFull, g.turned, g.openedAt = false, false, now
	}
	of := g
	switch {
	case g.calls != &g.own:
	case short, !wasLimited && g.control.Limited():
		g.observe(now)
		if of = g.divide(now); of != g {
			of.rebase()
		}
	}
	g.beginWindow(now)
	g.apply(now)
	return of
}

// catchUp closes a window that should be over.
func (g *group) catchUp(now clock.Instant) {
	g.advance(now)
	if now >= g.overdue {
		g.closeWindow(now)
		g.publish()
	}
}

// learn learns the usual response times of classes while their calls do not disturb each other,
// and weighs what they do by them.
func (g *group) learn(w limit.Window) {
	if g.control.Limited() && g.control.Known() {
		for _, c := range g.classes {
			if !c.usual.Verified() && c.recent.ends >= knownEnds {
				c.usual.Set(c.weight*g.control.Baseline(), c.recent.ends)
			}
		}
	}
	calm := g.control.Calm(w)
	changed := false
	for _, c := range g.classes {
		c.before = c.did
		changed = c.usual.Observe(c.did.WithoutQuick(), calm) || changed
		if good, known := c.did.Good(); known {
			c.lateFrom.Store(int64(good * float64(time.Second)))
		}
		c.quickBelow.Store(int64(c.usual.Mean() / 2 * float64(time.Second)))
	}
	if changed && g.calls == &g.own {
		g.weigh()
	}
}

// weigh has the calls of each class count by their usual response time: as much as their work is of that of a mean
// call of the group.
func (g *group) weigh() {
	ended, known, work, before, after := 0.0, 0.0, 0.0, 0.0, 0.0
	for _, c := range g.classes {
		ended += c.did.Ended
		before += c.did.Ended * c.weight
		work += c.did.Ended * c.usual.Mean()
		if c.usual.Verified() {
			known += c.did.Ended
		}
	}
	if work == 0 {
		return
	}
	if known == ended {
		defer g.control.Verify(work / ended)
	}
	for _, c := range g.classes {
		if c.usual.Mean() > 0 {
			c.weight = c.usual.Mean() * ended / work
		}
		after += c.did.Ended * c.weight
	}
	g.control.Rescale(before / after)
}

// rebase has the response time of the service be that which is usual of the classes, as far as that is known of all: it is
// about these only, and the calls of which it was learnt may have been those of others that take far longer.
func (g *group) rebase() {
	ended, work := 0., 0.
	for _, c := range g.classes {
		if c.recent.rate > 0 && !c.usual.Verified() {
			return
		}
		ended += c.recent.rate * c.weight
		work += c.recent.rate * c.usual.Mean()
	}
	if ended > 0 {
		g.control.Rebase(work / ended)
	}
}

// moveThreshold has the threshold divide calls into as many as pass and those that do not,
// while more come than can pass.
func (g *group) moveThreshold(now clock.Instant, w limit.Window) {
	active := g.shed.Load().Active()
	g.ended += w.Ended
	switch {
	case !active && g.queueLimit.over() && !g.control.Testing():
		g.share = 1
		g.shed.Start(now)
	case active && g.queueLimit.calm():
		g.shed.Stop()
		return
	case !active || now.Sub(g.shedAt) < moveEvery:
		return
	}
	total, _ := g.shed.Totals()
	passed, blocked := g.ended, float64(total-g.refused)
	g.shedAt, g.ended, g.refused = now, 0, total
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
func (g *group) apply(now clock.Instant) {
	g.limit = uint64(math.Ceil(g.control.Limit()))
	base := g.control.Baseline()
	rate := g.control.Rate()
	maxDelay := g.current.rule.MaxDelay
	if base == 0 {
		base = maxDelay.Seconds() / 10
		rate = float64(g.limit) / base
	}
	g.late.Store(int64(g.control.Late() * float64(time.Second)))
	g.queueLimit.configure(base, g.control.Variation(), rate, g.betweenEnds(), maxDelay)
	if g.queue.total > 0 || g.underWay() >= g.atMost(g.limit) {
		g.markFull(now)
	}
	g.serve(now)
}

// betweenEnds returns how many seconds pass until the next of the calls under way ends, if they are as many as the limit
// allows and of the classes that were under way in the last window.
func (g *group) betweenEnds() float64 {
	calls, work := 0., 0.
	for _, c := range g.classes {
		calls += c.did.Calls
		work += c.did.Calls * c.usual.Mean()
	}
	if calls == 0 || g.control.Classes() < 2 {
		return 0 // as long as the baseline says
	}
	return work / calls / float64(g.limit)
}

// measureIfDrained begins the measurement of a probe when few enough calls are under way.
func (g *group) measureIfDrained(now clock.Instant) {
	if g.control.Draining() && g.underWay() <= g.atMost(g.limit) {
		g.control.Drained()
		g.beginWindow(now)
	}
}

// resume counts a call of a class that goes on, whatever the limit.
func (g *group) resume(c *class, now clock.Instant) {
	c.resume(now)
	if g.calls == &g.own {
		g.calls.Add(1 - units(now)<<callsBits)
	}
}
