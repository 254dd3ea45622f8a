package adaptive

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// group is classes under one limit: their calls under way, those that wait, and the control
// of the limit.
//
// The word says what happens to a call that comes:
//
//   - While it is open, it has the limit. Calls pass by one compare-and-swap of the calls under
//     way, and leave by one addition.
//   - While it is full, calls pass by the lock, and calls that leave take the lock to let
//     others pass. The word has a verdict for each level: wait or refuse. Classes that have
//     few calls under way pass all the same, see isLight.
//
// A call that leaves counts itself out first and looks at the word after that. Who marks
// the group full does so first and looks at the calls under way after that. So no place is
// free for long while a call waits.
type group struct {
	_     [cacheLine]byte // what every call writes stands apart from what it only reads
	own   atomic.Uint64
	_     [cacheLine - 8]byte
	calls *atomic.Uint64 // as those of a flight: own, or those of the only class there can be

	word atomic.Uint64
	due  atomic.Int64 // the clock.Instant from which on the window may be complete, or classes are to be compared
	late atomic.Int64 // the time.Duration from which on a failed call is a sign of overload

	testing atomic.Bool // whether the limit is about to be raised rather than enforced
	_       [cacheLine - 36]byte

	// overload.mu guards what follows.
	*overload
	index      int // among the groups
	classes    []*class
	control    *limit.Control
	queue      queue
	queueLimit queueLimit
	advanced   clock.Instant // up to which queueLimit has the time
	limit      uint64
	strangers  int64         // calls under way of classes that have left the group, less those elsewhere of classes that have come
	begun      clock.Instant // when the window began
	windowDue  clock.Instant // from which on it may be complete
	compareDue clock.Instant // when classes are to be compared
	lastUsed   clock.Instant // about when a call ended last
	overdue    clock.Instant // when the window has its greatest length
	fullAt     clock.Instant // since when the group is full; meaningless while it is open
	fullTime   time.Duration // in the window, up to fullAt
	isFull     bool
	openedAt   clock.Instant // since when it is open; meaningless while it is full
	peak       float64       // most calls under way or waiting since the limit was reached or raised
	turned     bool          // a call that found the group full did not wait, and no other has waited since

	isLimited bool          // when it was published last
	changedAt clock.Instant // since when it is so, or has had classes that went apart

	went   clock.Instant // when a class came from the common group
	slowAt clock.Instant // when one was slow

	shed    *shed.Threshold
	shedAt  clock.Instant // when the threshold was moved last
	ended   float64       // since then
	refused uint64        // up to then
	share   float64
}

const (
	cacheLine = 64

	full         = 1 << 63
	verdictShift = 32 // two bits for each level, above the limit

	// The verdict on a priority.
	refuseAbove = 1 // refuse all calls
	refuseBelow = 2 // refuse calls below the threshold

	// preferred is the factor by which the limit of the queue is higher for calls that stand
	// above the threshold.
	preferred = 3
)

// newGroup returns a group without classes.
func newGroup(o *overload, index int, now clock.Instant) *group {
	r := &o.current.rule
	g := &group{
		overload: o, index: index, shed: shed.New(o.env.Seed), advanced: now, lastUsed: now,
		control: limit.New(r.InitialLimit, r.MinLimit, r.MaxLimit),
	}
	g.calls = &g.own
	g.beginWindow(now)
	g.apply(now)
	g.publish()
	return g
}

// renew has a group that has had no classes for a while begin anew.
func (g *group) renew(now clock.Instant) {
	r := &g.current.rule
	g.control = limit.New(r.InitialLimit, r.MinLimit, r.MaxLimit)
	g.queueLimit = queueLimit{}
	g.isFull, g.advanced, g.lastUsed = false, now, now
	g.beginWindow(now)
	g.apply(now)
	g.publish()
}

// underWay returns the number of calls under way.
func (g *group) underWay() uint64 { return g.calls.Load() & callsMask }

// atMost returns up to how many calls counted here others may begin, under a limit on those of the
// classes of the group, wherever they are counted.
func (g *group) atMost(limit uint64) uint64 {
	return uint64(max(int64(limit)+g.strangers, 0))
}

// begin counts a call of a class that begins, if fewer than limit calls are under way.
func (g *group) begin(c *class, now clock.Instant, limit uint64) bool {
	for {
		calls := g.calls.Load()
		if calls&callsMask >= limit {
			return false
		}
		if g.calls.CompareAndSwap(calls, calls+1-units(now)<<callsBits) {
			if g.calls == &g.own {
				c.resume(now)
			}
			return true
		}
	}
}

// leave counts a call of a class that was counted here out, and lets others pass.
func (g *group) leave(c *class, now clock.Instant) {
	c.leave(now)
	if g.calls == &g.own {
		g.calls.Add(units(now)<<callsBits - 1)
	}
	to := c.group.Load()
	g.letPass(now, g != to)
	if g != to {
		to.letPass(now, true)
	}
}

// letPass lets calls pass that wait, now that one has left. Moved says that this was of a class that
// is counted here but belongs to another group, or the other way round.
func (g *group) letPass(now clock.Instant, moved bool) {
	if g.word.Load()&full == 0 {
		return
	}
	g.lock(now)
	defer g.unlock()
	if moved {
		g.countStrangers()
	}
	g.serve(now)
}

// worked returns for how long the service worked for a call: its response time, but for what it
// waited within.
func worked(exit rule.Exit) time.Duration { return max(exit.Took()-exit.Waited, 0) }

// done counts the end of a call of a class that was counted here. The class may be in another
// group by now.
func (g *group) done(c *class, exit rule.Exit) {
	failed := exit.Failed || exit.Ignored
	if !exit.LongLived {
		c.end(worked(exit), failed, time.Duration(c.quickBelow.Load()), c.group.Load().lateFrom(c))
	}
	c.leave(exit.Now)
	if g.calls == &g.own {
		g.calls.Add(units(exit.Now)<<callsBits - 1)
	}
	to := c.group.Load() // after the call has left, so that a group that the class goes to meanwhile does not count it
	if g != to {
		g.letPass(exit.Now, true)
	}
	if to.word.Load()&full != 0 {
		to.lock(exit.Now)
		to.learnTest(c, exit, failed)
		if g != to {
			to.countStrangers()
		}
		to.serve(exit.Now)
		to.unlock()
	}
	if exit.Now >= clock.Instant(to.due.Load()) && to.mu.TryLock() {
		to.advance(exit.Now)
		to.closeWindow(exit.Now)
		to.unlock()
	}
}

// learnTest goes on with a test, if there is one, once a call of a class of the group has ended.
func (g *group) learnTest(c *class, exit rule.Exit, failed bool) {
	if !g.control.Testing() || exit.LongLived || c.group.Load() != g {
		return
	}
	took := max(worked(exit).Seconds(), minResponse)
	if !failed || worked(exit) >= time.Duration(c.quickBelow.Load()) {
		c.tested.add(took, exit.Start >= g.control.Began())
	}
	if !failed {
		g.control.Ended(exit.Start, took, c.referTo(exit))
	} else if worked(exit) >= g.lateFrom(c) {
		g.control.FailedLate()
	}
	g.test(exit.Now)
}

// lateFrom returns the response time from which on a failed call of a class is a sign of overload: clients who give up
// do so later than other calls end. Calls that fail no later than others end do so for another reason.
func (g *group) lateFrom(c *class) time.Duration {
	return time.Duration(max(g.late.Load(), c.lateFrom.Load()))
}

// isSlow says whether a class of the group is slow.
func (g *group) isSlow() bool {
	return slices.ContainsFunc(g.classes, func(c *class) bool { return c.recent.slow })
}

// lock locks the group and takes the time since the last event into account. A window that
// should be over, but in which no call ends, is closed.
func (g *group) lock(now clock.Instant) {
	g.mu.Lock()
	g.advance(now)
	if now >= g.overdue {
		g.closeWindow(now)
	}
}

func (g *group) advance(now clock.Instant) {
	if now > g.advanced {
		g.queueLimit.advance(now.Sub(g.advanced), &g.queue.size)
		g.advanced = now
	}
}

// unlock publishes what has changed since lock.
func (g *group) unlock() {
	g.publish()
	g.changes.Unlock(&g.mu)
}

// publish writes the word.
func (g *group) publish() {
	word := g.atMost(g.limit)
	if g.isFull {
		word |= full
		for i, sum := 0, 0; i < levels; i++ {
			sum += g.queue.size[i]
			word |= g.verdict(i, sum) << (verdictShift + 2*i)
		}
	}
	if g.word.Load() != word {
		g.word.Store(word)
	}
	if limited := g.control.Limited(); limited != g.isLimited {
		g.isLimited, g.changedAt = limited, g.advanced
		g.noteState(g.advanced)
	}
	if testing := g.control.Testing(); g.testing.Load() != testing {
		g.testing.Store(testing)
	}
}

// acquireFull decides on a call that finds the limit reached, and whose caller is not known.
func (g *group) acquireFull(of *class, c *rule.Call, word uint64) rule.Decision {
	if word&full == 0 {
		g.noteFull(of, c.Now)
		return rule.Wait
	}
	level := levelOf(c.Priority())
	verdict := word >> (verdictShift + 2*level)
	switch {
	case of.refuses.Load()>>level&1 == 0:
	case verdict&refuseAbove != 0:
		g.shed.Refuse(c.Priority(), false)
		return rule.Block
	case verdict&refuseBelow != 0 && g.shed.Load().Active():
		return optional.NeedsAttribute
	}
	g.goOn(c.Now)
	return rule.Wait
}

// shedOrWait refuses a call that is below the threshold; others may wait.
func (g *group) shedOrWait(c *rule.Call) rule.Decision {
	state := g.shed.Load()
	if !state.Active() {
		return rule.Wait
	}
	standing, place := g.shed.Find(state, c, uint64(c.Now))
	if standing != shed.Below {
		return rule.Wait
	}
	g.shed.Count(place)
	g.shed.Refuse(c.Priority(), true)
	return rule.Block
}

// goOn goes on with a test, though perhaps no call ends or waits, and closes a window that should be
// over for long.
func (g *group) goOn(now clock.Instant) {
	overdue := now > clock.Instant(g.due.Load()).Add(time.Second)
	if (overdue || g.testing.Load()) && g.mu.TryLock() {
		g.advance(now)
		if overdue {
			g.closeWindow(now)
		}
		g.test(now)
		g.serve(now)
		g.unlock()
	}
}

// noteFull marks the group as full if the limit is reached, unless the class of the call that found it so has left it.
// The call may not want to wait, or not have to, under a shadow rule.
func (g *group) noteFull(of *class, now clock.Instant) {
	g.lock(now)
	defer g.unlock()
	if of.group.Load() != g {
		return
	}
	g.markFull(now)
	g.turned = true // until it joins
	g.openIfIdle(now)
}

// markFull has all calls take the lock. Calls that do not wait leave the group open for
// the moment until the next one comes, in which waiting ones would have kept it full: if it
// is short, that time counts as full.
func (g *group) markFull(now clock.Instant) {
	if g.isFull {
		return
	}
	open := now.Sub(g.openedAt)
	brief := g.turned && open < g.queueLimit.longest/10
	if brief {
		g.fullTime += max(min(open, now.Sub(g.begun)), 0)
	}
	g.isFull, g.fullAt = true, now
	g.word.Store(full | g.atMost(g.limit))
	if brief && g.control.Testing() {
		return
	}
	g.peak = g.there()
	if !g.control.Reached(now) {
		return
	}
	for _, c := range g.classes {
		c.tested, c.reference, c.reached = tested{}, 0, c.read(now)
		if c.usual.Verified() || !g.control.Known() {
			c.reference = c.usual.Mean()
		}
	}
}

// openIfIdle lets calls pass without the lock if nobody waits and the limit is not reached.
func (g *group) openIfIdle(now clock.Instant) {
	if g.isFull && g.queue.total == 0 && g.underWay() < g.atMost(g.limit) && !g.control.Draining() {
		g.isFull, g.openedAt = false, now
		g.fullTime += max(now.Sub(g.fullAt), 0)
	}
}

// test has the control go on with a test of whether calls are short of something, in which it
// may raise the limit, or find that they are. It is no shortage of all if some are slow alone.
func (g *group) test(now clock.Instant) {
	if !g.control.Testing() {
		return
	}
	waited := g.queue.longest(now)
	if g.queue.total == 0 && g.turned {
		waited = g.control.Since(now) // calls come that do not wait
	}
	g.readProcessor()
	g.peak = max(g.peak, g.there())
	if !g.failsLate(now) {
		g.control.FailedOtherwise()
	}
	g.control.AsFast(!slices.ContainsFunc(g.classes, func(c *class) bool { return c.isSlower(now) }))
	raised, short := g.control.Judge(now, waited, g.patience(), g.surge)
	switch {
	case short && g.isDraining(): // a burst that is over
	case short && g.isUnclear() && g.control.LookAgain(now, g.patience()):
		g.apply(now)
	case short:
		of := g.endWindow(now, g.measure(now), true)
		if of == g && g.index == 0 {
			g.gather(now)
			g.apply(now)
		}
		if g.index == 0 && of.control.Shortage().By == limit.ByLimits {
			of.gatherSlow(now)
		}
	case raised:
		g.peak = g.there()
		g.apply(now)
	}
}

// failsLate says whether calls of a class fail later than others of it end, in the present window and the one before.
func (g *group) failsLate(now clock.Instant) bool {
	return slices.ContainsFunc(g.classes, func(c *class) bool {
		w := c.read(now).since(c.begun)
		return w.Failed > 0 && w.FailsLate(c.before)
	})
}

// there returns how many calls are under way or wait.
func (g *group) there() float64 { return float64(g.underWay()) + float64(g.queue.total) }

// isDraining says whether fewer calls are there than there were since the limit was reached or raised, by more than
// chance, so that those that wait will soon pass, unless clients give up.
func (g *group) isDraining() bool {
	return g.there() < g.peak-math.Sqrt(g.peak)/2 && !g.control.GivenUp()
}

// readProcessor tells the control how long goroutines wait for a processor: the process is short of
// processors if they wait as long as calls may at the rule.
func (g *group) readProcessor() {
	delay, known := g.delay.Load()
	longest := g.patience().Seconds()
	switch {
	case !known:
		g.control.SetProcessor(limit.ProcessorUnknown, 0)
	case delay >= longest:
		g.control.SetProcessor(limit.ProcessorShort, delay)
	case delay < longest/2:
		g.control.SetProcessor(limit.ProcessorIdle, delay)
	default:
		g.control.SetProcessor(limit.ProcessorBusy, delay)
	}
}

// isUnclear says whether it cannot be told yet of all classes whether they are short of something.
func (g *group) isUnclear() bool {
	if len(g.classes) == 1 {
		return false
	}
	for _, c := range g.classes {
		if c.underWay() > 0 && !c.recent.slow && c.tested.begunEnds < fewTested {
			return true
		}
	}
	return false
}

// patience returns how long calls wait for the result of a test, or about.
func (g *group) patience() time.Duration {
	if base := g.control.Baseline(); base > 0 {
		return min(time.Duration(10*base*float64(time.Second)), defaultMaxDelay)
	}
	return defaultMaxDelay
}
