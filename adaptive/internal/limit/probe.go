package limit

import (
	"math"
	"time"
)

// probe is an experiment with another limit.
type probe struct {
	phase probePhase
	up    bool
	limit float64
	count int           // of probes down in a row that told nothing
	spent time.Duration // since the probe began

	measured Window // so far
}

type probePhase uint8

const (
	noProbe probePhase = iota
	draining
	measuring
)

// schedule says when the next probe is due.
type schedule struct {
	due      time.Duration
	earliest time.Duration // in any case
	interval time.Duration
}

const (
	firstInterval = time.Second
	lastInterval  = 10 * time.Second

	// harmful is up to which share of what a lower limit keeps away is done all the same, while no call waits in the service.
	harmful = 0.35
)

// restart makes a probe due soon.
func (s *schedule) restart(now, spent time.Duration) {
	s.interval = firstInterval
	s.due = now + max(s.interval, 4*spent) // at most 20 % of the time
}

// next schedules the next probe after one that took a while, at growing intervals.
func (s *schedule) next(now, spent time.Duration) {
	s.interval = min(max(2*s.interval, firstInterval), lastInterval)
	s.due = now + max(s.interval, 24*spent) // at most 4 %
	s.earliest = now + 4*spent
}

func (c *Control) probeDown() {
	c.probe = probe{
		phase: draining, limit: max(math.Round(calmShare*c.limit), 1), count: c.probe.count, spent: c.probe.spent,
	}
}

func (c *Control) probeUp() {
	step := min(2*math.Sqrt(c.limit)*math.Exp2(float64(c.probe.count)), c.limit/calmShare-c.limit)
	c.probe = probe{
		phase: measuring, up: true, limit: min(c.limit+step, c.most), count: c.probe.count + 1, spent: c.probe.spent,
	}
}

// endProbe ends a probe, be it without a result. Another one is due soon if it has replaced
// the baseline.
func (c *Control) endProbe(replaced bool) {
	if c.probe.phase == noProbe {
		return
	}
	s := &c.down
	if c.probe.up {
		s = &c.up
	}
	if s.next(c.now, c.probe.spent); replaced {
		s.restart(c.now, c.probe.spent)
	}
	c.probe = probe{}
}

// judge takes a part of the measurement of a probe, and judges it when it is long enough. A
// probe up that does not get more done is over at once: it may be doing harm.
func (c *Control) judge(w Window) {
	c.probe.measured = c.probe.measured.Plus(w)
	w = c.probe.measured
	harmful := c.probe.up && w.throughput() < c.last.throughput()
	_, most, _ := c.Need()
	if w.Ends < max(80, 8*c.limit)*(1+c.variation) && w.Length < most && !harmful {
		return
	}
	if c.probe.up {
		c.judgeUp(w)
		return
	}
	c.judgeDown(w)
}

// judgeUp keeps the higher limit if much more was done with it than in the window before, and
// than ever of late: one window may have had few ends by chance.
func (c *Control) judgeUp(w Window) {
	x, growth := w.throughput(), c.probe.limit/c.limit-1
	before := max(c.last.throughput(), c.greatest)
	if x <= (1+growth/2)*before {
		c.endProbe(false)
		return
	}
	limit := c.probe.limit
	c.base.set(max(c.limit/c.last.throughput(), minResponse), w.Ends)
	c.down.restart(c.now, c.probe.spent)
	c.capacity, c.greatest = x, x
	c.setLimit(min(limit, c.target()))
	c.last = w
	c.probeUp()
}

// judgeDown learns from what a lower limit did.
func (c *Control) judgeDown(w Window) {
	b := &c.base
	r := w.responseNear(b.mean)
	wasVerified := b.verified
	share := w.inFlight() / c.last.inFlight()
	gain := w.throughput() / c.last.throughput()
	z := (gain - share) / (1 - share)
	tooMany := gain > 1+2*math.Sqrt(c.variation/w.Ends+c.variation/c.last.Ends) // fewer calls got more done
	near := math.Abs(r/b.mean-1) <= tolerance
	c.greatest = max(c.greatest, w.throughput())
	again := c.hasSpedUp
	c.hasSpedUp = false
	switch {
	case gain > faster && (!again || !tooMany): // the service has become faster meanwhile
		c.hasSpedUp = true
		c.capacity = w.throughput()
		c.learnShorter(w, true)
		c.setLimit(max(c.limit, c.target()))
		c.endProbe(true)
	case w.full() < 0.5: // few calls came
		c.endProbe(c.learn(w, true))
	case near && b.verified && !tooMany:
		c.learn(w, true)
		c.setLimit(c.target())
		c.endProbe(false)
	case near && b.verified: // the limit was too high, but no call waits at this one
		c.learnShorter(w, true)
		c.setLimit(min(c.probe.limit, c.target()))
		c.endProbe(true)
	case z > 0.65 || share >= 1: // as much was done with fewer calls under way
		c.learnShorter(w, true)
		c.setLimit(c.probe.limit)
		c.last, c.probe.count = w, 0
		if c.limit <= c.least {
			c.endProbe(false)
			return
		}
		c.probeDown()
	case z < harmful: // what was not let in was not done: the service was not busy
		c.endProbe(c.learnOfProbe(w))
	case c.probe.count < 2:
		c.probe.count++
		c.probeDown()
	default: // nothing better is to be had
		c.learnOfProbe(w)
		c.endProbe(!wasVerified)
	}
}

// learnOfProbe sets the limit by the response times of a probe. If they show that the service has changed, what it could
// do before says nothing.
func (c *Control) learnOfProbe(w Window) (replaced bool) {
	before := c.base.mean
	replaced = c.learn(w, true)
	if ratio := c.base.mean / before; ratio > jump || ratio < 1/jump {
		c.greatest = c.capacity
	}
	c.setLimit(c.target())
	return replaced
}
