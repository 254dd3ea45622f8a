package limit

import "math"

// learnCalm learns the baseline from calls that do not disturb each other, and from
// response times that are clearly shorter.
func (c *Control) learnCalm(w Window) {
	b := &c.base
	r := w.responseNear(b.mean)
	if w.Full > 0 || w.inFlight() > calmShare*c.limit {
		c.calm = Window{}
		if r < b.mean*(1-3*math.Sqrt(c.variation/w.Ends)) {
			c.learnShorter(w, false)
		}
		return
	}
	c.calm = c.calm.Plus(w)
	if c.calm.Ends >= 80*(1+c.variation) {
		if c.calm.isSteady() {
			c.learn(c.calm, false)
		}
		c.calm = Window{}
	}
}

// learnUnfilled lowers the baseline to the mean response time while the limit is hardly
// reached: a busy service only makes it longer. It takes many calls, so that chance does not
// lower it.
func (c *Control) learnUnfilled(w Window) {
	if w.full() > mostlyOpen {
		return
	}
	if c.unfilled = c.unfilled.Plus(w); c.unfilled.Ends < 1000*(1+c.variation) {
		return
	}
	if c.base.verified && c.unfilled.response() < c.base.mean {
		c.learnMean(c.unfilled.response(), c.unfilled, false)
	}
	c.unfilled = Window{}
}

// learn takes the response time of a window into the baseline.
func (c *Control) learn(w Window, probe bool) (replaced bool) {
	return c.learnMean(w.responseNear(c.base.mean), w, probe)
}

func (c *Control) learnMean(mean float64, w Window, probe bool) (replaced bool) {
	most := max(200*(1+c.variation), w.throughput())
	replaced = c.base.learn(mean, w.Ends, most, c.variation, probe)
	if replaced {
		c.down.restart(c.now, c.probe.spent)
	}
	return replaced
}

// learnShorter learns from a window in which calls may have disturbed each other: the
// baseline is not longer than that.
func (c *Control) learnShorter(w Window, probe bool) {
	r := w.responseNear(c.base.mean)
	switch {
	case r >= c.base.mean:
	case c.base.verified:
		c.learn(w, probe)
	default:
		c.base.guess(r)
	}
}
