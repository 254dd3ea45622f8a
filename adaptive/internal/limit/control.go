package limit

import (
	"math"
	"time"
)

const (
	maxVariation = 16   // of response times, squared
	minResponse  = 1e-6 // seconds
	tolerance    = 0.25 // of response times that count as those of the baseline
	idle         = 0.05 // of response times of a service that is hardly busy
	farShorter   = 0.5  // a response time so much shorter is believed sooner
	farLonger    = 1.0  // and one so much longer
	slowly       = 0.1
	saturated    = 0.7 // the share of time at the limit from which on throughput is capacity
	mostlyOpen   = 0.3 // the share of time at the limit up to which it is hardly reached
	calmShare    = 0.6 // of the limit: below it calls do not disturb each other
	jump         = 1.5 // a change of throughput by this factor is one of the service

	faster    = 1.25 // throughput of a probe down that shows another service, in multiples of that before
	minWindow = 100 * time.Millisecond
	maxWindow = 10 * time.Second
)

// Control finds the limit. Its methods must not be called concurrently.
type Control struct {
	least, most float64
	limit       float64
	base        baseline
	variation   float64 // squared coefficient of variation of response times

	// Throughput while the service is saturated, calls a second: of late, 0 if it is not
	// saturated, and the greatest of late.
	capacity, greatest float64
	capacityEnds       float64 // from so many ends the capacity was found
	beforeJump         float64 // the capacity before a jump that the last window showed; else 0

	calm       Window // calm windows in a row
	unfilled   Window // windows in which the limit was hardly reached
	last       Window // the last saturated one
	phase      phase
	test       test
	initial    float64
	relaxed    time.Duration // for how long the limit has hardly been reached
	classes    int
	calmCalls  float64       // calls under way of late, without the limit
	calmRate   float64       // throughput of late, without the limit
	suspects   float64       // the limit before an outage; 0 if there is none
	failingFor time.Duration // since when nearly all calls fail
	hopeless   bool          // they have done so for long: all failures count as late
	giveUps    giveUps
	halvedAt   time.Duration // when the limit was halved last because clients give up
	well       float64       // calls that have ended well since then
	restored   restoredLimit
	shortage   Shortage
	shown      shown
	closed     Window  // the last one
	before     earlier // of the last shortage
	start      start
	processor  Processor
	delay      float64 // seconds that what can run waits for a processor
	computes   bool    // the process was short of processors when the shortage was shown
	hasSpedUp  bool    // the last probe down got much more done; if another does, too, the limit is to blame

	probe probe
	now   time.Duration // since the control began
	down  schedule
	up    schedule
}

// earlier is what a shortage has shown.
type earlier struct {
	limit float64 // that was right; 0 if there was no shortage
	work  float64 // that could be done in a second, in seconds of usual response times: about the workers that are busy
}

// restoredLimit is a limit that was restored after an outage.
type restoredLimit struct {
	at   time.Duration
	good float64 // the limit at which calls went well
}

// New returns a control with an initial limit and its bounds.
func New(initial, least, most int) *Control {
	c := &Control{limit: float64(initial), initial: float64(initial), variation: 1}
	c.SetBounds(least, most)
	return c
}

// Begin sets the limit of a control that knows nothing yet, or that is for other resources from now on.
func (c *Control) Begin(limit float64) {
	c.endProbe(false) // what it would be compared with was done by others
	c.setLimit(limit)
}

// SetBounds sets the bounds of the limit.
func (c *Control) SetBounds(least, most int) {
	c.least, c.most = float64(least), float64(most)
	c.setLimit(c.limit)
}

// Limit returns the limit on calls under way now.
func (c *Control) Limit() float64 {
	if c.probe.phase != noProbe {
		return c.probe.limit
	}
	return c.limit
}

// Baseline returns the mean response time of the service when it is not busy, in seconds;
// 0 as long as it is unknown.
func (c *Control) Baseline() float64 { return c.base.mean }

// Variation returns the squared coefficient of variation of response times.
func (c *Control) Variation() float64 { return c.variation }

// Rate returns how many calls a second are expected to end at the limit; 0 if that is not
// known.
func (c *Control) Rate() float64 {
	if !c.base.known() {
		return 0
	}
	rate := c.limit / c.base.mean
	if c.capacity > 0 {
		rate = min(rate, c.capacity)
	}
	return rate
}

// Late returns the response time from which on a failed call is a sign of overload, in
// seconds.
func (c *Control) Late() float64 {
	switch {
	case c.hopeless:
		return 0
	case !c.base.verified:
		return c.base.mean
	}
	return 1.5 * c.base.mean
}

// Need says when the present window is complete: when it is at least that long and so many
// calls have ended, or when it has its greatest length.
func (c *Control) Need() (least, most time.Duration, ends float64) {
	base := seconds(c.base.mean)
	if c.probe.phase == noProbe {
		if ends = 24 * (1 + c.variation); !c.base.known() {
			ends = leastEnds
		}
		return min(max(minWindow, 5*base), maxWindow), maxWindow, ends
	}
	most = max(2*time.Second, 10*base)
	if c.probe.phase == draining {
		return most, most, 0
	}
	return min(max(minWindow, 5*base), most), most, 80 * (1 + c.variation)
}

// Draining says that a probe waits until no more than [Control.Limit] calls are under
// way: then Drained is to be called, and a new window to begin.
func (c *Control) Draining() bool { return c.probe.phase == draining }

// Drained begins the measurement of a probe.
func (c *Control) Drained() { c.probe.phase = measuring }

// Close takes the results of a window that is complete.
func (c *Control) Close(w Window) {
	c.now += w.Length
	c.closed = w
	if c.probe.phase != noProbe {
		c.probe.spent += w.Length
	}
	if w.Ends == 0 {
		c.closeWithoutEnds(w)
		return
	}
	if c.isInVainToLimit(w) {
		c.liftShown()
	}
	c.variation += 0.2 * (w.variation() - c.variation)
	if c.isOutage(w) {
		return
	}
	if !c.base.known() {
		c.base.guess(min(w.response(), w.Times/w.Ends))
		c.start = start{w.response(), w.inFlight()}
	}
	switch c.probe.phase {
	case draining:
		c.endProbe(false) // the calls under way do not end
	case measuring:
		c.judge(w)
	default:
		c.observe(w)
	}
}

// closeWithoutEnds raises the limit when all calls under way have hung for so long that
// they do not use the capacity of the service.
func (c *Control) closeWithoutEnds(w Window) {
	if c.probe.phase != noProbe {
		c.endProbe(false)
	}
	if c.phase == limited && w.Length >= maxWindow && w.full() >= saturated {
		c.setLimit(c.limit + max(1, c.limit/8))
	}
}

// isOutage says whether most calls fail, so that there is nothing to learn from them. If
// they do so late, the limit is lowered until some do not.
func (c *Control) isOutage(w Window) bool {
	if w.Failed > w.Ends/2 {
		c.failing(w)
		return true
	}
	c.hopeless, c.failingFor = false, 0
	if w.Late <= w.Ends/3 {
		c.giveUps = giveUps{}
	}
	switch {
	case w.Late > w.Ends/3 && c.isOld(w):
		return true
	case w.Late > w.Ends/3: // response times would be longer if clients were more patient
		if !c.isInVain(w) && c.phase == limited { // else nothing says that fewer would be in time
			c.endProbe(false)
			c.halve(w)
		}
		return true
	case c.suspects > 0:
		if c.well += w.Ends - w.Failed; c.well < wellAgain {
			return true
		}
		if !c.computes { // else it was no outage that is over now
			c.restored = restoredLimit{c.now, c.limit}
			c.setLimit(c.suspects)
		}
		c.suspects = 0
		return true
	}
	return false
}

// wellAgain is after how many calls that end well an outage is over.
const wellAgain = 10

// isOld says whether the calls of a window that failed late had begun before the limit was halved last, if it is lower
// already than before clients gave up. They say nothing about the limit that is in force.
func (c *Control) isOld(w Window) bool {
	return c.phase == limited && c.limit <= c.suspects && w.Patience >= (c.now-c.halvedAt).Seconds()
}

func (c *Control) failing(w Window) {
	c.endProbe(false)
	c.calm = Window{}
	if w.Failed < 0.9*w.Ends {
		c.hopeless, c.failingFor = false, 0
	}
	// The baseline may be that of a busy service, which no call ends beyond any more: when
	// nearly all calls fail for long and take as long as it says, it is no measure of lateness.
	asLong := w.full() >= saturated || w.response() >= c.base.mean
	if c.failingFor += w.Length; c.failingFor > 2*time.Second && asLong {
		c.hopeless = true
	}
	if w.Late <= w.Ends/2 {
		c.failsOtherwise()
		return
	}
	c.giveUps.other = 0
	if !c.isOld(w) && !c.isInVain(w) {
		c.halve(w)
	}
}

// halve lowers the limit of a service that most calls are too late for.
func (c *Control) halve(w Window) {
	if c.phase != limited {
		c.shortage = Shortage{By: ByFailures, Calls: math.Round(w.Late / w.Ends * w.Ended), Of: w.Ended} // calls, not work
		c.computes = false
	}
	c.suspect()
	c.beLimited()
	c.halvedAt, c.well = c.now, 0
	c.setLimit(c.limit / 2)
	if c.start.calls > 0 && !c.base.verified {
		c.setLimit(min(c.limit, c.start.calls))
	}
}

// suspect remembers the limit before an outage, so that it is restored when that is over.
func (c *Control) suspect() {
	switch {
	case c.suspects > 0:
	case c.restored.good > 0 && c.now-c.restored.at < 5*time.Second:
		c.suspects = c.restored.good // it was the limit that made calls fail
	case c.phase == testing: // it is that of the test
		c.suspects = c.test.proven()
	default:
		c.suspects = c.limit
	}
	c.boundSuspects()
}

// boundSuspects has no limit be restored that is far above the calls that were under way when the first of them ended, as
// long as nothing better is known.
func (c *Control) boundSuspects() {
	if c.start.calls > 0 && !c.base.verified {
		c.suspects = min(c.suspects, plenty(c.start.calls))
	}
}

// beLimited has the limit be enforced.
func (c *Control) beLimited() {
	c.phase, c.relaxed = limited, 0
	c.computes = c.computes || c.processor == ProcessorShort
}

// observe takes a window without a probe.
func (c *Control) observe(w Window) {
	c.learnCalm(w)
	if c.phase != limited {
		c.learnUnfilled(w)
		c.follows(w)
		return
	}
	if w.full() < saturated {
		c.capacity = 0
		c.learnUnfilled(w)
		if c.relaxed += w.Length; w.full() > mostlyOpen {
			c.relaxed = 0
		}
		if c.relaxed >= time.Second {
			c.phase = open
			c.remember()
		}
		if w.response() < 1.5*c.base.mean && w.full() < mostlyOpen {
			c.setLimit(max(c.limit, min(1.05*c.limit, c.target())))
		}
		return
	}
	c.relaxed = 0
	c.computes = c.computes || c.processor == ProcessorShort
	c.last = w
	jumped := c.follow(w)
	target := c.target()
	r := w.response()
	switch {
	case c.mayDoMore() && c.now >= c.up.due:
		c.probeUp()
	case !c.base.verified, c.base.awaitsProbe(), w.Over && (jumped || c.now >= c.down.due):
		c.probeDown()
	case w.inFlight() < c.idleBelow()*c.base.mean*c.capacity:
		c.setLimit(max(target, 1.05*c.limit))
	case target < c.limit && !w.Over && r < 1.5*c.base.mean:
		c.setLimit(c.limit + slowly*(target-c.limit))
	case target < 0.8*c.limit && c.now >= c.down.earliest:
		c.probeDown()
	case w.Over && c.now >= c.up.due:
		c.probeUp()
	default:
		c.setLimit(min(target, 2*c.limit))
	}
}

// follows has the limit of a service that nothing is known to be short of follow the calls
// under way: so it is reached soon when there are many more.
func (c *Control) follows(w Window) {
	if c.phase == testing && !w.Slow && w.full() < mostlyOpen && !w.AtLimit {
		c.phase = open
	}
	if c.phase == testing || w.Slow {
		return
	}
	weight := 0.2
	if c.calmRate == 0 {
		weight = 1
	}
	c.calmRate += weight * (w.throughput() - c.calmRate)
	c.calmCalls += weight * (w.inFlight() - c.calmCalls)
	n := c.calmCalls
	usual := c.Plenty(n)
	if c.before.limit > 0 { // more calls under way only waited
		usual = min(usual, c.before.limit)
	}
	if usual < c.limit {
		usual = c.limit + slowly*(usual-c.limit)
	}
	c.setLimit(usual)
}

// remember keeps what the shortage that is over has shown, if that rests on a response time that is known.
func (c *Control) remember() {
	if c.base.verified {
		c.before = earlier{min(c.limit, c.target()), c.greatest * c.base.mean}
	}
}

// plenty returns a limit that is rarely reached while so many calls are under way on average.
func plenty(n float64) float64 { return 2 * (n + math.Sqrt(n)) }

// idleBelow returns the response time, in multiples of the baseline, below which the
// service is hardly busy, as far as the baseline is known.
func (c *Control) idleBelow() float64 { return 1 + idle + math.Sqrt(c.variation/c.base.ends) }

// target returns the limit for what the service can do: what is under way then without a
// queue (Little's law), and some more, to notice when it can do more.
func (c *Control) target() float64 {
	busy := c.greatest * c.base.mean
	return busy + 0.57*math.Sqrt(busy)
}

// follow smooths the throughput. It returns whether that has changed at once.
func (c *Control) follow(w Window) (jumped bool) {
	x := w.throughput()
	deviation := 3 * math.Sqrt(c.variation/w.Ends)
	enough := max(64*(1+c.variation), c.capacity/4)
	before := c.beforeJump
	c.beforeJump = 0
	switch {
	case c.capacity == 0:
		c.capacity, c.capacityEnds = x, math.Inf(1)
	case before > 0 && math.Abs(math.Log(x/before)) < math.Abs(math.Log(x/c.capacity)):
		c.capacity, c.capacityEnds = before, enough // the jump was chance
	case x > c.capacity*max(jump, 1+deviation), x*jump < c.capacity && x < c.capacity*(1-deviation):
		c.beforeJump = c.capacity
		if c.capacity, jumped = x, true; c.base.verified { // else nothing better is known
			c.capacityEnds = 0
		}
	default:
		c.capacity += (x - c.capacity) * w.Ends / (w.Ends + min(enough, c.capacityEnds))
	}
	c.capacityEnds += w.Ends
	c.greatest *= math.Exp2(-w.Length.Seconds() / 10)
	if c.capacityEnds >= enough { // after a jump, it may be as much by chance
		c.greatest = max(c.capacity, c.greatest)
	}
	return jumped
}

func (c *Control) setLimit(limit float64) { c.limit = min(max(limit, c.least), c.most) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
