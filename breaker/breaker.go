package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/statechange"
	"github.com/penstock-go/penstock/rule"
)

// breaker is the state that all versions of a rule share.
//
// A closed breaker lets calls pass and counts outcomes without a lock, and an open one
// refuses calls without a lock. Everything else happens under the mutex. Time is a
// parameter and there is no timer: the next call, end of a call or Status finds that a
// probe has timed out, and dates the change back.
type breaker struct {
	// Every call reads these; they are written under the mutex. A call reads state
	// before refuseUntil. A change of state writes them in the opposite order, so a
	// call that finds the breaker open also finds until when.
	current     atomic.Pointer[limiter] // the version in force
	state       atomic.Uint64           // see the type state
	refuseUntil atomic.Int64            // unless it is closed, calls before this instant are refused
	nextDue     atomic.Int64            // no call under way of a closed breaker becomes slow before this instant
	running     atomic.Pointer[running] // nil as long as no version of the rule is about slow calls
	_           [24]byte                // keeps the window, which every end of a call writes, off this cache line

	window window

	mu sync.Mutex
	// The mutex guards the rest.
	since     clock.Instant // when the state began
	doublings int           // how often the open time has doubled
	inForceAt clock.Instant // when the current version came into force

	// These are for a half-open breaker.
	probes     []probePlace
	underWay   int           // how many probes are, of those that have not counted as bad
	endedWell  int           // how many probes have ended well
	endedBadly int           // how many were bad, or have timed out
	lastProbe  clock.Instant // when a probe was last asked for, or ended

	changes statechange.Queue
}

const (
	past   = clock.Instant(math.MinInt64)
	future = clock.Instant(math.MaxInt64)
)

func (b *breaker) present() state { return state(b.state.Load()) }

// newBreaker returns a breaker that is closed, or forced to be as an operator said.
func newBreaker(l *limiter, now clock.Instant, forced string) *breaker {
	b := &breaker{since: now, inForceAt: now, probes: l.spare}
	b.changes.Grow(4)
	l.spare = nil
	b.nextDue.Store(int64(future))
	if l.slowAfter > 0 {
		b.running.Store(newRunning())
	}
	b.current.Store(l)
	b.refuseUntil.Store(int64(past))
	b.state.Store(uint64(closed.next(closed)))
	b.window.recent.Store(frozen)
	b.window.clear(now, l.bucket, l.last)
	b.window.resume()
	switch forced {
	case Closed:
		b.enter(forcedClosed, now)
	case Open:
		b.enter(forcedOpen, now)
	}
	b.changes.Discard() // it begins so
	return b
}

// unlock reports the changes of state and releases the mutex.
func (b *breaker) unlock() { b.changes.Unlock(&b.mu) }

// admit decides on a call that Acquire could not decide on without a lock.
func (b *breaker) admit(l *limiter, c rule.Call) (t rule.Ticket, decision rule.Decision) {
	now := c.Now
	b.mu.Lock()
	defer b.unlockFor(&t, now)
	if !b.bringIntoForce(l, now) {
		return 0, rule.Stale
	}
	b.timeOut(now)
	switch s := b.present(); s.code() {
	case closed:
		return b.admitClosed(l, c, s), rule.Pass
	case forcedClosed:
		return notCounted, rule.Pass
	case forcedOpen:
		return 0, rule.Block
	case open:
		if now < clock.Instant(b.refuseUntil.Load()) {
			return 0, rule.Block
		}
		b.enter(halfOpen, now)
	}
	return b.probe(c)
}

// admitClosed lets a call pass a closed breaker, and makes more slots for calls under way if all are
// taken.
func (b *breaker) admitClosed(l *limiter, c rule.Call, s state) rule.Ticket {
	if l.slowAfter == 0 {
		return s.ticket()
	}
	t, _ := b.watch(l, c, s)
	if !isWatched(t) && !c.LongLived() {
		b.running.Load().grow()
		t, _ = b.watch(l, c, s)
	}
	return t
}

// unlockFor is unlock for a call. If the observer panics when it hears of a change, the call is not
// made, and frees its place if it is a probe.
func (b *breaker) unlockFor(t *rule.Ticket, now clock.Instant) {
	reported := false
	defer func() {
		if !reported && isProbe(*t) {
			b.giveBack(*t, now)
		}
	}()
	b.unlock()
	reported = true
}

// count counts the outcome of a call without a lock. It returns false when that needs a
// lock: the breaker opens, the state has changed, or the outcome does not fit into the word of
// recent ones.
func (b *breaker) count(t rule.Ticket, e rule.Exit) bool {
	w := &b.window
	for {
		// This has to be read first: if anything below changes after it, the swap fails.
		recent := w.recent.Load()
		if !isClosedSince(t, b.present()) || recent&frozen != 0 {
			return false
		}
		l := b.current.Load()
		o := l.judge(&e)
		if o == unknown {
			return true
		}
		var next uint64
		var total tally
		var ok bool
		if l.last > 0 {
			w.touch(e.Now)
			next, total, ok = w.addToBatch(recent, l.last, o)
		} else {
			next, total, ok = w.addToBucket(recent, l.bucket, e.Now, o)
		}
		if !ok || l.opens(total.calls, total.bad) {
			return false
		}
		if w.recent.CompareAndSwap(recent, next) {
			return true
		}
	}
}

// end handles the end of a call that count could not handle.
func (b *breaker) end(t rule.Ticket, e rule.Exit) {
	if s := b.present(); !isOf(t, s) && s.code() != halfOpen {
		return // the call passed before the state last changed
	}
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(e.Now - 1) // a probe that ends at the instant of its timeout is in time
	if !isOf(t, b.present()) {
		return
	}
	if outcome := b.current.Load().judge(&e); isProbe(t) {
		b.endProbe(t, e.Now, outcome)
	} else if outcome != unknown {
		b.endCall(e.Now, outcome)
	}
}

// endCall counts an outcome of a closed breaker, and opens it if that reaches the
// threshold.
func (b *breaker) endCall(now clock.Instant, o outcome) {
	w := &b.window
	w.freeze()
	if w.count(now, o) && b.current.Load().opens(w.calls.Load(), w.bad.Load()) {
		b.enter(open, now)
		return
	}
	w.resume()
}

// enter changes the state. Calls that passed before do not count any more.
func (b *breaker) enter(code state, at clock.Instant) {
	l := b.current.Load()
	before := b.present()
	after := before.next(code)
	b.since = max(b.since, at)
	b.window.freeze()
	switch code {
	case closed, forcedClosed, forcedOpen:
		b.doublings = 0
		b.window.clear(b.since, l.bucket, l.last)
	case halfOpen:
		clear(b.probes)
		b.underWay, b.endedWell, b.endedBadly = 0, 0, 0
	}
	b.refuseUntil.Store(int64(b.refusal(code)))
	b.state.Store(uint64(after))
	if r := b.running.Load(); r != nil && before.code() == closed {
		r.clear() // after the state was stored, see watch
		b.nextDue.Store(int64(future))
	}
	if code == closed {
		b.window.resume()
	}
	if before.name() != after.name() {
		b.changes.Add(l.changed, b.since, before.name(), after.name(), "")
	}
}

// updateRefusal brings refuseUntil up to date within a state.
func (b *breaker) updateRefusal() {
	b.refuseUntil.Store(int64(b.refusal(b.present().code())))
}

// refusal returns the instant before which all calls are refused in a state.
func (b *breaker) refusal(code state) clock.Instant {
	l := b.current.Load()
	switch code {
	case open:
		return b.since.Add(l.openTime(b.doublings))
	case forcedOpen:
		return future
	case halfOpen:
		if b.underWay > 0 && !b.isPlaceFree() {
			_, due := b.nextProbe()
			return due // the breaker may open then
		}
	}
	return past
}

// bringIntoForce makes another version the one in force. It returns false if that
// version is older than the present one.
func (b *breaker) bringIntoForce(l *limiter, now clock.Instant) bool {
	old := b.current.Load()
	if old == l {
		return true
	}
	if old.version > l.version {
		return false
	}
	b.timeOut(now - 1)
	if l.slowAfter > 0 && b.running.Load() == nil {
		b.running.Store(newRunning())
	}
	if len(l.spare) > len(b.probes) {
		copy(l.spare, b.probes)
		b.probes = l.spare
	}
	l.spare = nil
	isClosed := b.present().code() == closed
	b.window.freeze()
	switch {
	case old.bucket != l.bucket || old.slowAfter != l.slowAfter:
		b.window.clear(now, l.bucket, l.last) // the outcomes were judged or dated differently
	case old.last != l.last:
		b.window.resize(l.last)
	}
	b.current.Store(l)
	b.inForceAt = max(b.inForceAt, now)
	b.nextDue.Store(int64(future))
	if isClosed && l.slowAfter > 0 {
		b.nextDue.Store(int64(past)) // which calls under way are slow is looked up at once
	}
	b.updateRefusal()
	if isClosed {
		b.window.resume()
	}
	if b.present().code() == halfOpen {
		b.judgeProbes(now)
	}
	return true
}

// control forces a state, or releases it.
func (b *breaker) control(now clock.Instant, to string) {
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(now - 1)
	code := b.present().code()
	isForced := code == forcedClosed || code == forcedOpen
	switch {
	case to == Closed && code != forcedClosed:
		b.enter(forcedClosed, now)
	case to == Open && code != forcedOpen:
		b.enter(forcedOpen, now)
	case to == "" && isForced:
		b.enter(closed, now)
	}
}

// timedOut returns the state after probes have timed out by now.
func (b *breaker) timedOut(now clock.Instant) state {
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(now)
	return b.present()
}

func (b *breaker) status(now clock.Instant) rule.Status {
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(now - 1) // a probe may still end at this instant
	var left time.Duration
	var forced float64
	s := b.present()
	switch s.code() {
	case open:
		left = max(0, clock.Instant(b.refuseUntil.Load()).Sub(now))
	case forcedClosed, forcedOpen:
		forced = 1
	}
	var counted tally
	if s.code() == closed {
		counted = b.window.at(now)
		if b.current.Load().inARow {
			run := b.window.badRun()
			counted = tally{run, run}
		}
	}
	return rule.Status{
		State:  s.name(),
		Gauges: []float64{float64(counted.calls), float64(counted.bad), left.Seconds(), forced},
	}
}

// forgetAfter is how long after it could have probed a breaker that nobody calls counts
// as idle although it is not closed; and one that is closed although it has outcomes that do not
// go as time passes. Without it, failing resources that nobody calls any
// more would be kept for ever.
const forgetAfter = 10 * time.Minute

// idle changes and reports nothing: the engine may hold locks of its own.
func (b *breaker) idle(now clock.Instant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.present().code() {
	case closed:
		return b.window.at(now).calls == 0 || b.window.isForgotten(now)
	case open:
		return now >= clock.Instant(b.refuseUntil.Load()).Add(forgetAfter)
	case halfOpen:
		return b.underWay == 0 && now >= b.lastProbe.Add(forgetAfter)
	}
	return false
}
