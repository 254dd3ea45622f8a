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
	_           [40]byte                // keeps the window, which every end of a call writes, off this cache line

	window window

	mu sync.Mutex
	// The mutex guards the rest.
	since     clock.Instant // when the state began
	doublings int           // how often the open time has doubled
	inForceAt clock.Instant // when the current version came into force

	// These are for a half-open breaker.
	probes    []clock.Instant // when the probes under way passed; noProbe where a place is free
	underWay  int             // how many of them there are
	endedWell int             // how many other probes have ended well
	lastProbe clock.Instant   // when a probe was last asked for, or ended

	changes statechange.Queue
}

const (
	past    = clock.Instant(math.MinInt64)
	future  = clock.Instant(math.MaxInt64)
	noProbe = past
)

func (b *breaker) present() state { return state(b.state.Load()) }

// newBreaker returns a breaker that is closed, or forced to be as an operator said.
func newBreaker(l *limiter, now clock.Instant, forced string) *breaker {
	b := &breaker{since: now, inForceAt: now, probes: l.spare}
	b.changes.Grow(4)
	l.spare = nil
	b.current.Store(l)
	b.refuseUntil.Store(int64(past))
	b.state.Store(uint64(closed.next(closed)))
	b.window.recent.Store(frozen)
	b.window.clear(now, l.bucket)
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
func (b *breaker) admit(l *limiter, now clock.Instant) (t rule.Ticket, decision rule.Decision) {
	b.mu.Lock()
	defer b.unlockFor(&t, now)
	if !b.bringIntoForce(l, now) {
		return 0, rule.Stale
	}
	b.timeOut(now)
	switch s := b.present(); s.code() {
	case closed:
		return s.ticket(), rule.Pass
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
	return b.probe(now)
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
// lock: the breaker opens, the state has changed, or the outcome belongs to another bucket.
func (b *breaker) count(t rule.Ticket, e rule.Exit) bool {
	w := &b.window
	for {
		// This has to be read first: if anything below changes after it, the swap fails.
		recent := w.recent.Load()
		if !isClosedSince(t, b.present()) || recent&frozen != 0 {
			return false
		}
		l := b.current.Load()
		next := recent + oneCall
		switch l.judge(e) {
		case bad:
			next += oneBad
		case unknown:
			return true
		}
		added := unpack(next)
		if uint64(int64(e.Now)-w.start.Load()) >= uint64(l.bucket) || added.calls == mostCalls ||
			l.opens(w.calls.Load()+added.calls, w.bad.Load()+added.bad) {
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
	if outcome := b.current.Load().judge(e); isProbe(t) {
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
		b.window.clear(b.since, l.bucket)
	case halfOpen:
		for i := range b.probes {
			b.probes[i] = noProbe
		}
		b.underWay, b.endedWell = 0, 0
	}
	b.refuseUntil.Store(int64(b.refusal(code)))
	b.state.Store(uint64(after))
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
		if b.underWay > 0 && b.underWay+b.endedWell >= l.probes {
			return b.due() // the breaker opens then
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
	if len(l.spare) > len(b.probes) {
		copy(l.spare, b.probes)
		b.probes = l.spare
	}
	l.spare = nil
	isClosed := b.present().code() == closed
	b.window.freeze()
	if old.bucket != l.bucket || old.slowAfter != l.slowAfter {
		b.window.clear(now, l.bucket) // the outcomes were judged or dated differently
	}
	b.current.Store(l)
	b.inForceAt = max(b.inForceAt, now)
	b.updateRefusal()
	if isClosed {
		b.window.resume()
	}
	if b.present().code() == halfOpen {
		b.closeIfProbed(now)
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
	}
	return rule.Status{
		State:  s.name(),
		Gauges: []float64{float64(counted.calls), float64(counted.bad), left.Seconds(), forced},
	}
}

// forgetAfter is how long after it could have probed a breaker that nobody calls counts
// as idle although it is not closed. Without it, failing resources that nobody calls any
// more would be kept for ever.
const forgetAfter = 10 * time.Minute

// idle changes and reports nothing: the engine may hold locks of its own.
func (b *breaker) idle(now clock.Instant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.present().code() {
	case closed:
		return b.window.at(now).calls == 0
	case open:
		return now >= clock.Instant(b.refuseUntil.Load()).Add(forgetAfter)
	case halfOpen:
		return b.underWay == 0 && now >= b.lastProbe.Add(forgetAfter)
	}
	return false
}
