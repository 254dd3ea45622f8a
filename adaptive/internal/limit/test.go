package limit

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// phase is what is known of whether the service is short of something.
type phase uint8

const (
	open    phase = iota // nothing says so: calls pass
	testing              // the limit was reached: it is raised step by step to see what more calls do
	limited              // more calls under way only took longer
)

// test is an experiment: the limit is doubled, again and again, until calls that were let in at
// a higher level are seen to take longer in proportion, or not. Calls wait meanwhile, and
// none is refused.
type test struct {
	levels   [maxLevels]level
	count    int
	reached  clock.Instant
	harmless float64 // the limit up to which calls did not take longer
	arrivals float64 // calls that came since then
	marks    [2]arrivals
	ends     float64 // calls that ended while the limit was reached
	took     float64 // the sum of their response times, in seconds
	asFast   bool    // at a start, no resource is known to have become slower
	blind    int     // how often the limit was raised although hardly a call had ended
	unloaded unloaded
}

// unloaded is a level at which no call waited in the service: the mean response time in seconds, of so many calls, and
// how many ended in a second at the next level; all 0 if there is none.
type unloaded struct{ response, ends, rate float64 }

// arrivals is how many calls had come at an instant.
type arrivals struct {
	at       clock.Instant
	arrivals float64
}

// mark has the second half of the time since the limit was reached be known, at least, or somewhat more of it.
func (t *test) mark(now clock.Instant) {
	if now.Sub(t.reached) >= 2*t.marks[1].at.Sub(t.reached) {
		t.marks[0], t.marks[1] = t.marks[1], arrivals{now, t.arrivals}
	}
}

const maxLevels = 4 // that are compared: the lowest and the latest

// level is the calls that were let in while the limit was so high.
type level struct {
	limit  float64
	since  clock.Instant
	from   clock.Instant // calls that began then or later count: not those that came together
	all    float64       // calls that ended at the level, whenever they began
	known  float64       // of these, calls of resources whose usual response time is known
	work   float64       // sum of their usual response times
	ratios float64       // sum of their response times, in multiples of the usual ones
	took   float64       // sum of the response times of all, in seconds
	tooks  float64       // sum of their squares
	came   float64       // calls that came
	late   float64       // calls that failed late, since as many did not
	good   float64       // calls that did not meanwhile
	lasted float64       // seconds, of a level that is over

	ends    float64 // of these, calls that count
	ratio   float64 // sum of their response times, in multiples of the usual ones
	logs    float64 // sum of the logarithms of these
	squares float64 // and of their squares
}

const (
	fewEnds   = 3.
	leastEnds = 8.
	asMuch    = 0.9 // of the calls that end usually
	maxBlind  = 4
	hanging   = time.Second            // without ends
	stuck     = time.Second / 4        // without ends that say anything
	tooLong   = 3                      // times as long as calls may wait: nobody waits for those that are under way
	certainty = 2                      // standard errors
	together  = 200 * time.Microsecond // in which calls begin that waited for a raised limit
	more      = 1.25                   // calls in a second, that come in a surge

	// AsUsual is the multiple of usual response times up to which others are no sign of anything.
	AsUsual = 1.25
)

// Testing says whether the limit is about to be raised rather than enforced.
func (c *Control) Testing() bool { return c.phase == testing }

// AtMost says whether the limit of a test is as high as it may be, and since when it is reached then.
func (c *Control) AtMost() (since clock.Instant, is bool) {
	return c.test.present().since, c.limit >= c.most
}

// Limited says whether the service is known to be short of something.
func (c *Control) Limited() bool { return c.phase == limited }

// Reached is called when as many calls are under way as the limit says. It returns whether a test
// begins.
func (c *Control) Reached(now clock.Instant) bool {
	switch c.phase {
	case testing: // it was not for a while
		l := c.test.present()
		*l = level{limit: l.limit, since: now, from: now}
		c.test.forgetEarlier(now)
		c.test.reached, c.test.arrivals = now, 0
		c.test.marks = [2]arrivals{{at: now}, {at: now}}
		return false
	case limited:
		return false
	}
	c.phase = testing
	c.test = test{reached: now, marks: [2]arrivals{{at: now}, {at: now}}}
	c.test.add(level{limit: c.limit, since: now, from: now})
	return true
}

// GivenUp says whether the shortage that was found is that most calls fail late.
func (c *Control) GivenUp() bool { return c.shortage.By == ByFailures }

// Since returns for how long the limit has been reached at the present level.
func (c *Control) Since(now clock.Instant) time.Duration { return now.Sub(c.test.present().since) }

// Began returns when the limit was reached.
func (c *Control) Began() clock.Instant { return c.test.reached }

func (t *test) add(l level) {
	if t.count == maxLevels {
		copy(t.levels[1:], t.levels[2:])
		t.count--
	}
	t.levels[t.count] = l
	t.count++
}

// forgetEarlier has the present level not be compared with those before, if calls have been replaced by others since they
// ended: what takes longer meanwhile takes longer for another reason.
func (t *test) forgetEarlier(now clock.Instant) {
	for i := range t.count - 1 {
		l := &t.levels[i]
		if l.took == 0 {
			continue
		}
		ended := l.since.Add(seconds(l.lasted))
		underWay := l.tooks / l.took // how long calls take that are under way
		if now.Sub(ended) > max(hanging, seconds(replaced*underWay)) {
			l.ends = 0
		}
	}
}

// replaced is in how many response times other calls are under way.
const replaced = 1.5

// endLevel ends the present level. If as much more was done at it than at the one before as more calls were let in, no
// call waited in the service at that one, as after a probe down.
func (t *test) endLevel(now clock.Instant) {
	if t.count == 0 || t.present().lasted > 0 {
		return
	}
	l := t.present()
	l.lasted = now.Sub(l.since).Seconds()
	if t.count == 1 || l.rate() == 0 {
		return
	}
	lower := &t.levels[t.count-2]
	share := lower.limit / l.limit
	if lower.rate() > 0 && share < 1 && (lower.rate()/l.rate()-share)/(1-share) < harmful {
		t.unloaded = unloaded{lower.limit / lower.rate(), lower.all, l.rate()}
	}
}

// rate returns how many calls ended in a second at a level that is over; 0 if fewer ended than may be under way.
func (l *level) rate() float64 {
	if l.lasted <= 0 || l.all < l.limit {
		return 0
	}
	return l.all / l.lasted
}

func (t *test) present() *level { return &t.levels[t.count-1] }

// Arrived takes the arrival of a call.
func (c *Control) Arrived() {
	if c.phase == testing {
		c.test.arrivals++
		c.test.present().came++
	}
}

// FailedLate takes the end of a call of the test that failed after a long time.
func (c *Control) FailedLate() { c.test.present().late++ }

// FailedOtherwise says that calls that failed late did so for another reason than that it was late.
func (c *Control) FailedOtherwise() { c.test.present().late = 0 }

// AsFast says whether no resource is known to be slower than usual, or at a start than its first calls, though perhaps
// others end more calls now.
func (c *Control) AsFast(yes bool) { c.test.asFast = yes }

// endedWell takes the end of a call that did not fail.
func (l *level) endedWell() {
	if l.good++; l.good >= l.late && l.all > l.limit {
		l.good, l.late = 0, 0
	}
}

// areGivenUp says whether most calls failed late.
func (l *level) areGivenUp() bool { return l.late >= leastEnds && l.late > l.good }

// Ended takes the end of a call of the test, which took so many seconds. Usual is how long calls of
// its resource took when the test began; 0 if that was not known: the call does not count then.
func (c *Control) Ended(start clock.Instant, took, usual float64) {
	l := c.test.present()
	l.all++
	l.endedWell()
	l.took += took
	l.tooks += took * took
	c.test.ends++
	c.test.took += took
	if usual == 0 {
		return
	}
	l.known++
	l.work += usual
	l.ratios += took / usual
	if start >= l.from {
		log := math.Log2(took / usual)
		l.ends++
		l.ratio += took / usual
		l.logs += log
		l.squares += log * log
	}
}

// ready says whether as many calls have ended as were under way, and enough of those that count:
// those that end first are the short ones.
func (l *level) ready() bool { return l.all >= l.limit && l.ends >= leastEnds }

// mean returns the mean of the logarithms, and the square of its standard error.
func (l *level) mean() (mean, variance float64) {
	mean = l.logs / l.ends
	return mean, max(l.squares/l.ends-mean*mean, 0.02) / l.ends
}

// elasticity returns by how much longer calls took at this level than at a lower one, in
// proportion to the limits and as logarithms: 0 if they took as long, 1 if as much longer as more
// were under way, so that no more was done.
func (l *level) elasticity(lower *level) (e, deviation float64) {
	high, v := l.mean()
	low, w := lower.mean()
	step := math.Log2(l.limit / lower.limit)
	return (high - low) / step, math.Sqrt(v+w) / step
}

// Judge goes on with a test. Waited is for how long the call waits that
// came first, longest for how long calls may wait, surge how many calls came of late. It returns whether it has
// raised the limit, and whether the service is short of something.
func (c *Control) Judge(now clock.Instant, waited, longest time.Duration, surge func(clock.Instant) Surge) (raised, isShort bool) {
	l := c.test.present()
	if waited <= 0 {
		return false, false
	}
	c.test.mark(now)
	known := c.base.verified
	asEarlier := known && c.isAsEarlier(now)
	asUsual := l.ready() && known && l.ratio/l.ends <= AsUsual+0.5*math.Sqrt(c.variation/l.ends)
	switch {
	case l.areGivenUp() && !c.giveUps.vain:
		c.shortage = Shortage{By: ByFailures, Calls: l.late, Of: l.late + l.good}
		return false, true // clients give up: to let more in would help nobody
	case asUsual && !asEarlier:
		return c.raiseAfter(now, 0), false
	case c.surge(now, surge):
		return false, true // it is not the service that has changed
	case asEarlier && waited < longest:
		return false, false // it may be over soon
	case asEarlier && c.isShortAgain(now):
		return false, true
	case asUsual:
		return c.raiseAfter(now, 0), false
	case !known && c.isShortSinceStart(now):
		return false, true
	case l.ready():
		switch c.verdict() {
		case short:
			return false, true
		case enough:
			c.before = earlier{} // more can be done
			return c.raiseAfter(now, 1), false
		}
	}
	if !known && l.ready() {
		return c.raise(now, l.limit), false
	}
	if known && l.all >= l.limit && l.all >= asMuch*c.calmRate*now.Sub(l.since).Seconds() {
		if waited < longest {
			return false, false // as much is done as usual: it may be over soon
		}
	}
	return c.raiseUnclear(now, waited, longest), false
}

// raiseUnclear raises the limit when the test has shown nothing for too long.
func (c *Control) raiseUnclear(now clock.Instant, waited, longest time.Duration) (raised bool) {
	l := c.test.present()
	since := now.Sub(l.since)
	patience := longest/2 + longest/4*time.Duration(c.test.blind)
	if c.areFewEnds(now, waited, longest) && waited >= patience && since >= patience {
		c.test.blind = min(c.test.blind+1, maxBlind)
		return c.raise(now, l.limit)
	}
	unknown := l.all >= l.limit && l.known < max(leastEnds, l.all/2) && since >= stuck // nothing is known of most calls
	return (l.ready() || unknown) && waited >= longest/2 && since >= longest/2 && c.raise(now, l.limit)
}

// areFewEnds says whether hardly a call has ended. It says so, too, where calls take longer than any may wait, or at a start
// those that are under way take far longer: until they have ended nothing is known of them, unless calls are seen to take
// longer than usual, or at a start than the first ones.
func (c *Control) areFewEnds(now clock.Instant, waited, longest time.Duration) bool {
	t, l := &c.test, c.test.present()
	if !c.base.verified {
		underWay := l.limit * now.Sub(l.since).Seconds() / (l.all + 1)
		return t.asFast && (t.ends < fewEnds || underWay > tooLong*longest.Seconds())
	}
	return t.asFast && c.base.mean > longest.Seconds() || t.ends < fewEnds || l.all < fewEnds && waited >= hanging
}

// isAsEarlier says whether no more is done than could be done in the last shortage, as far as is known.
func (c *Control) isAsEarlier(now clock.Instant) bool {
	l := c.test.present()
	if c.before.limit == 0 || l.limit < c.before.limit || l.known < leastEnds {
		return false
	}
	if l.known >= l.limit && l.work > (more+2*math.Sqrt(c.variation/l.known))*c.before.work*now.Sub(l.since).Seconds() {
		c.before = earlier{}
		return false
	}
	return true
}

// isShortAgain says whether as much is done as could be done in the last shortage, and calls take longer
// than usual: it is the same one.
func (c *Control) isShortAgain(now clock.Instant) bool {
	l := c.test.present()
	slower := l.ratios / l.known
	if l.known < l.limit || slower <= AsUsual+math.Sqrt(c.variation/l.known) ||
		l.work < asMuch*c.before.work*now.Sub(l.since).Seconds() {
		return false
	}
	c.shortage = Shortage{By: ByEarlier, Slower: slower}
	return true
}

// isShortSinceStart says whether calls take longer than when the first of them ended, by a greater factor than that by
// which more is done, while more come than end.
func (c *Control) isShortSinceStart(now clock.Instant) bool {
	l, s := c.test.present(), &c.start
	if s.calls < 1 || c.test.asFast || l.all < leastEnds || l.all >= asMuch*l.came-certainty*math.Sqrt(l.came*(1+c.variation)) {
		return false
	}
	slower := l.took / l.all / s.response
	gain := l.all / now.Sub(l.since).Seconds() / s.rate()
	deviation := math.Sqrt(c.variation/l.all + c.variation/leastEnds)
	if math.Log(gain) < math.Log(asMuch)-deviation/2 || math.Log(slower) <= certainty*deviation+max(math.Log(gain), 0) {
		return false // less is done, for another reason, or more calls got more done
	}
	c.test.harmless = s.calls
	c.shortage = Shortage{By: ByLimits, Limit: l.limit, Lower: s.calls, Slower: slower}
	return true
}

type verdict uint8

const (
	undecided verdict = iota
	short             // more calls under way took longer, in proportion
	enough            // they did not
)

// verdict compares the present level with those before.
func (c *Control) verdict() verdict {
	l := c.test.present()
	for i := c.test.count - 2; i >= 0; i-- {
		lower := &c.test.levels[i]
		if !lower.ready() {
			continue
		}
		e, deviation := l.elasticity(lower)
		switch {
		case e-certainty*deviation > 0.5:
			c.test.harmless = lower.limit
			c.shortage = Shortage{By: ByLimits, Limit: l.limit, Lower: lower.limit, Slower: l.slower(lower)}
			return short
		case e+certainty*deviation < 0.5:
			return enough
		}
	}
	return undecided
}

// slower returns how many times as long calls took at this level as at a lower one.
func (l *level) slower(lower *level) float64 {
	high, _ := l.mean()
	low, _ := lower.mean()
	return math.Exp2(high - low)
}

// Surge is how many calls came in a time and how many ended, how many usually do in it, the variance of the difference, and
// how many more are there, under way or waiting, than a moment before. Slower is how many times as long as
// usual calls take; 0 if that is not clear.
type Surge struct {
	Came, Ended, Usual, Variance, Growth float64
	Slower                               float64
	Within                               time.Duration

	// Still says that clearly more calls came than usual of late, too, of calls of which few usually come, and more than ended.
	Still bool
}

// Plus returns two surges at once.
func (s Surge) Plus(o Surge) Surge {
	return Surge{
		s.Came + o.Came, s.Ended + o.Ended, s.Usual + o.Usual, s.Variance + o.Variance, s.Growth + o.Growth,
		max(s.Slower, o.Slower), max(s.Within, o.Within), s.Still || o.Still,
	}
}

// IsMore says whether clearly more calls came than usual.
func (s Surge) IsMore() bool {
	return s.Came >= leastEnds && s.Came > more*s.Usual+2*math.Sqrt(s.Variance)
}

// IsDemand says whether clearly more calls came than usual, and no fewer ended: else less is done than usual, for
// another reason.
func (s Surge) IsDemand() bool { return s.IsMore() && s.Ended >= asMuch*s.Usual }

// IsDemandOfFew is as [Surge.IsDemand], of calls that are so few that no fewer ended but for chance, by one standard
// deviation.
func (s Surge) IsDemandOfFew() bool {
	return s.IsMore() && s.Ended >= asMuch*s.Usual-math.Sqrt(s.Variance)
}

// surge says whether clearly more calls came than usual since they take longer, and still do since the
// limit was reached.
func (c *Control) surge(now clock.Instant, since func(clock.Instant) Surge) bool {
	lately := c.test.marks[0]
	expected := c.calmRate * now.Sub(lately.at).Seconds()
	few := expected < leastEnds // since the limit was reached: what has come and ended before has to say it
	still := Surge{Came: c.test.arrivals - lately.arrivals, Usual: expected, Variance: expected}.IsMore()
	if !still && !few {
		return false
	}
	s := since(now)
	if !still && !s.Still {
		return false
	}
	if c.processor == ProcessorShort && s.IsMore() && s.Growth > 0 {
		c.shortage = Shortage{By: ByProcessor, Calls: s.Came, Of: s.Usual, Within: s.Within, Delay: c.delay}
		return true
	}
	l := c.test.present()
	isOfFew := few && s.Still && s.Ended >= fewEnds && s.IsDemandOfFew()
	if !isOfFew && (!s.IsDemand() || s.Growth <= 0 || l.all < leastEnds) {
		return false // it is over or has only begun, or what takes longer is not due to it
	}
	if c.base.verified && l.known >= leastEnds && l.ratios/l.known > AsUsual+math.Sqrt(c.variation/l.known) {
		s.Slower = l.ratios / l.known
	}
	if s.Slower == 0 {
		return false
	}
	c.shortage = Shortage{By: BySurge, Calls: s.Came, Of: s.Usual, Within: s.Within, Slower: s.Slower}
	return true
}

// raise begins the next level.
func (c *Control) raise(now clock.Instant, from float64) bool {
	if c.limit >= c.most {
		return false
	}
	c.setLimit(2 * from)
	c.test.endLevel(now)
	c.test.add(level{limit: c.limit, since: now, from: now.Add(together)})
	return true
}

// raiseAfter begins the next level, and forgets all before the present one, and that as well if levels is 0.
func (c *Control) raiseAfter(now clock.Instant, levels int) bool {
	if c.limit >= c.most {
		return false
	}
	from := c.test.present().limit
	c.test.endLevel(now)
	if levels == 1 {
		c.test.levels[0] = *c.test.present()
	}
	c.test.count = levels
	return c.raise(now, from)
}

// Enforce puts the limit in force that the test has found: that of the service, or if its
// response time is not known the lowest that was tested.
func (c *Control) Enforce(now clock.Instant) {
	c.computes = false
	c.beLimited()
	c.shown.remember(c.closed, c.shortage.By)
	if u := c.test.unloaded; !c.base.verified && u.ends > 0 {
		c.base.verified = true
		c.base.set(max(u.response, minResponse), u.ends)
		c.greatest = u.rate
		c.down.restart(c.now, 0)
	}
	harmless := c.test.proven()
	c.setLimit(harmless)
	if c.base.verified {
		done := c.test.present().all / max(now.Sub(c.test.present().since).Seconds(), 1e-3)
		c.setLimit(min(harmless, plenty(max(done, c.calmRate)*c.base.mean)))
	}
	if c.suspects > 0 || c.GivenUp() { // calls failed at a limit of the test, which is no limit to go back to
		c.suspects = 0
		c.suspect()
	}
}

// proven returns the highest limit of the test at which calls are not known to have taken longer.
func (t *test) proven() float64 {
	if t.harmless > 0 {
		return t.harmless
	}
	return t.levels[0].limit
}

// Usually is called when so many calls are usually under way of those that the limit is for. While the process
// is short of processors, it is no more than plenty for them.
func (c *Control) Usually(calls float64) {
	if most := plenty(calls); c.computes && c.phase == limited && c.limit > most {
		c.endProbe(false) // it would set a limit of its own
		c.setLimit(most)
	}
}

// LookAgain goes on with a test that has found a shortage until it can be told which resources are
// short of something. It returns whether it does.
func (c *Control) LookAgain(now clock.Instant, longest time.Duration) bool {
	t := &c.test
	switch since := now.Sub(t.reached); {
	case t.present().areGivenUp() || since >= longest:
		return false
	case since >= longest/2 && t.count == 1:
		c.raise(now, t.present().limit)
	}
	return true
}

// Open returns a control that knows what this one does, of a service that is short of nothing.
func (c *Control) Open() *Control {
	of := New(int(c.initial), int(c.least), int(c.most))
	of.base, of.variation, of.classes = c.base, c.variation, c.classes
	return of
}

// Leave is called when resources go on without the limit, of which so many calls end in a second and
// so many are under way.
func (c *Control) Leave(rate, calls float64) {
	c.Expect(-rate, -calls)
	c.capacity = max(c.capacity-rate, 0)
	c.greatest = max(c.greatest-rate, c.capacity)
	c.setLimit(c.limit - calls)
}

// Plenty returns the limit of a service that is short of nothing while so many calls are under way.
func (c *Control) Plenty(calls float64) float64 {
	return min(max(c.initial, plenty(calls), c.least), c.most)
}

// Calm says whether calls did not disturb each other in a window.
func (c *Control) Calm(w Window) bool {
	return c.phase != limited && w.Full == 0 && w.inFlight() <= calmShare*c.limit
}

// Expect is called when so many more calls a second will end than of late, and as many more will
// be under way: those of a resource that has come, or less than 0 for one that has gone.
func (c *Control) Expect(rate, calls float64) {
	c.endProbe(false) // what it would be compared with was done by others
	c.before = earlier{}
	c.calmRate = max(c.calmRate+rate, 0)
	c.calmCalls = max(c.calmCalls+calls, 0)
	if n := c.calmCalls; c.phase == open {
		c.setLimit(max(c.limit, plenty(n)))
	}
}

// Adopt goes on with a limit and with what is known of the calls of one resource, the only one that is left.
func (c *Control) Adopt(usual *Usual, limit float64) {
	if usual.Mean() > 0 {
		c.base, c.variation, c.start = usual.base, usual.variation, usual.start
		c.boundSuspects()
	}
	c.setLimit(limit)
}

// Known says whether the response time of the service is known.
func (c *Control) Known() bool { return c.base.verified }

// Verify takes a mean response time for that of the service when it is not busy, unless that is known.
func (c *Control) Verify(mean float64) {
	if !c.base.verified {
		c.base.verified = true
		c.base.set(math.Max(mean, minResponse), leastEnds)
	}
}

// Rebase sets the mean response time of the service when it is not busy, unless nothing is known of it, as that of the
// calls is known that it serves now.
func (c *Control) Rebase(mean float64) {
	if c.base.verified {
		c.base.set(math.Max(mean, minResponse), c.base.ends)
	}
}

// Rescale is called when ends count by this factor less than before.
func (c *Control) Rescale(factor float64) {
	c.base.mean *= factor
	c.capacity /= factor
	c.greatest /= factor
}

// Classes returns how many resources had calls under way in the last window.
func (c *Control) Classes() int { return c.classes }

// SetClasses says how many resources had calls under way in the last window.
func (c *Control) SetClasses(n int) { c.classes = n }
