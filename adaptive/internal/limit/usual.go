package limit

import (
	"math"
	"time"
)

// Usual is the response time that calls of one resource have when they do not disturb each
// other. The zero Usual knows nothing.
type Usual struct {
	base      baseline
	variation float64 // squared coefficient of variation
	calm      Window  // in a row
	first     Window  // the first windows, until some calls have ended
	sample    Window  // windows since the variation was looked at
	start     start
	measured  bool // the mean is that of calm windows, though perhaps of few calls
}

// sampled is of how many calls the variation is measured: that of fewer is too small.
const sampled = 24

// Mean returns the mean in seconds; 0 if nothing is known.
func (u *Usual) Mean() float64 { return u.base.mean }

// Verified says whether the mean was measured while calls did not disturb each other.
func (u *Usual) Verified() bool { return u.base.verified }

// Measured says whether the mean was measured while calls did not disturb each other, be it of few calls.
func (u *Usual) Measured() bool { return u.measured || u.base.verified }

// Variation returns the squared coefficient of variation.
func (u *Usual) Variation() float64 { return u.variation }

// Observe takes a window of the resource, calm if calls did not disturb each other in it. It
// returns whether the mean has changed.
func (u *Usual) Observe(w Window, calm bool) bool {
	u.calm = u.calm.Plus(w)
	if !calm {
		u.calm = Window{}
	}
	if u.start.calls == 0 && w.Calls > 0 {
		if u.first = u.first.Plus(w); u.first.Ended >= leastEnds {
			u.start = start{u.first.response(), u.first.inFlight()}
		}
	}
	if w.Ended == 0 {
		return false
	}
	if u.variation == 0 {
		u.variation = 1
	}
	if u.sample = u.sample.Plus(w); u.sample.Ended >= sampled {
		u.variation += 0.2 * (u.sample.variation() - u.variation)
		u.sample = Window{}
	}
	if !u.base.known() {
		u.base.guess(w.Times / w.Ended)
		return true
	}
	if !calm {
		return u.learnShorter(w)
	}
	if !u.base.verified {
		u.guess()
	}
	enough := u.calm.Ended >= 80*(1+u.variation) || u.calm.Ended >= 8 && u.calm.Length >= 10*time.Second
	if !enough {
		return !u.base.verified
	}
	if !u.calm.isSteady() {
		u.calm = Window{}
		return !u.base.verified
	}
	u.base.learn(u.calm.responseNear(u.base.mean), u.calm.Ended, 200*(1+u.variation), u.variation, false)
	u.calm = Window{}
	return true
}

// learnShorter lowers the mean to that of a window in which calls may have disturbed each other, which makes it only longer.
func (u *Usual) learnShorter(w Window) bool {
	r := max(w.response(), minResponse)
	switch {
	case w.Ended < leastEnds || r >= u.base.mean*(1-3*math.Sqrt(u.variation/w.Ended)):
		return false
	case u.base.verified:
		return u.base.learn(r, w.Ended, 200*(1+u.variation), u.variation, false)
	}
	u.base.set(r, w.Ended)
	return true
}

// guess takes the calm windows so far for what is usual, until that is known. While calls pile up, it is not raised.
func (u *Usual) guess() {
	r := max(u.calm.responseAtLeast(), minResponse)
	if u.base.ends < leastEnds || r < u.base.mean || u.calm.Ended >= 3*u.calm.inFlight() && u.calm.isSteady() {
		u.base.set(r, u.calm.Ended)
		u.start = start{r, u.calm.inFlight()}
		u.measured = true
	}
}

// IsLongerThanFirst says whether calls, those that have not ended included, clearly take longer than they did when the
// first of them ended.
func (u *Usual) IsLongerThanFirst(w Window) bool {
	ends := w.Ended + 1
	longer := w.Calls / ends / max(u.start.response, minResponse)
	return u.start.calls > 0 && math.Log(longer) > math.Log(AsUsual)+certainty*math.Sqrt(u.variation*(1/ends+1/leastEnds))
}

// Set replaces the mean by one that was measured of so many calls.
func (u *Usual) Set(mean, ends float64) {
	u.base.verified = true
	u.base.set(math.Max(mean, minResponse), ends)
	u.calm = Window{}
}
