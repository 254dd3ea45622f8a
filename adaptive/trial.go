package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// trial is an experiment with one class of the common group while that is limited: it goes on without the limit for a
// while. If the others get no less done meanwhile, it is not short of what they are short of, and stays without.
type trial struct {
	class   *class
	limited *group // that of the others while the class goes on without; nil before that
	since   clock.Instant
	before  measured
	due     clock.Instant // when the next one may begin
	pause   time.Duration
}

// measured is what a class and others under a limit did: calls of each under way, and the work of the others in a second.
type measured struct{ tried, others, work float64 }

const (
	firstPause = 4 * time.Second
	lastPause  = 64 * time.Second
)

// try goes on with a trial, or begins one.
func (g *group) try(now clock.Instant) {
	t := &g.trial
	c := t.class
	switch {
	case c == nil:
		if g.control.Limited() && now >= t.due {
			if c = g.heldBack(); c != nil {
				t.class = c
				g.markTrial(g, now)
			}
		}
		return
	case t.limited == nil && (!g.control.Limited() || c.group.Load() != g),
		t.limited != nil && (!t.limited.control.Limited() || c.group.Load() != g):
		g.endTrial(now, t.limited != nil)
		return
	}
	length := min(max(time.Second, time.Duration(3*c.usual.Mean()*float64(time.Second))), 10*time.Second)
	of := g
	if t.limited != nil {
		of = t.limited
	}
	m, ends := of.measureTrial(c, now)
	elapsed := now.Sub(t.since)
	switch {
	case t.limited == nil && elapsed >= length:
		t.before = m
		if to := g.part(func(other *class) bool { return other == c }, now); to != g {
			t.limited = to
			g.markTrial(to, now)
			return
		}
		g.endTrial(now, false)
	case t.limited != nil && elapsed >= length/4:
		more := max(m.tried-t.before.tried, 0)
		all := t.before.others + t.before.tried
		ratio := all / (all + more)
		deviation := math.Sqrt((1 + t.limited.control.Variation()) / max(ends, 1))
		switch done := m.work / t.before.work; {
		case done+2*deviation < (1+ratio)/2, elapsed >= length && done < (1+ratio)/2:
			t.limited.takeBack(c, t.before.tried, now)
			g.endTrial(now, false)
		case elapsed >= length:
			g.endTrial(now, true)
		}
	}
}

// heldBack returns the class of which calls wait for the longest usual response time, if others are not as long.
func (g *group) heldBack() (longest *class) {
	for _, c := range g.classes {
		if c.queued > 0 && c.usual.Mean() > alone*g.control.Baseline() && c.recent.ends >= knownEnds && !c.recent.slow &&
			(longest == nil || c.usual.Mean() > longest.usual.Mean()) {
			longest = c
		}
	}
	return longest
}

// markTrial begins to measure the classes of a group.
func (g *group) markTrial(of *group, now clock.Instant) {
	g.trial.since = now
	for _, c := range of.classes {
		c.tried = c.read(now)
	}
	g.trial.class.tried = g.trial.class.read(now)
}

// measureTrial returns what has been done since then.
func (g *group) measureTrial(tried *class, now clock.Instant) (m measured, ends float64) {
	w := tried.read(now).since(tried.tried)
	seconds := max(w.Length.Seconds(), 1e-3)
	m.tried = w.Calls / seconds
	for _, c := range g.classes {
		if c == tried {
			continue
		}
		w := c.read(now).since(c.tried)
		ends += w.Ended
		m.others += w.Calls / seconds
		m.work += (w.Ended - w.Failed) * c.usual.Mean() / seconds
	}
	return m, ends
}

// takeBack has a class go under the limit again.
func (g *group) takeBack(c *class, held float64, now clock.Instant) {
	from := c.group.Load()
	limit := g.control.Limit()
	from.remove(c, now)
	g.welcome(c, now)
	g.control.Begin(limit + held)
	g.countStrangers()
	from.countStrangers()
	g.apply(now)
	g.publish()
}

// endTrial ends the trial. The next one is soon if it was of use.
func (g *group) endTrial(now clock.Instant, useful bool) {
	t := &g.trial
	t.class, t.limited = nil, nil
	if t.pause = min(max(2*t.pause, firstPause), lastPause); useful {
		t.pause = firstPause / 2
	}
	t.due = now.Add(t.pause)
}
