package breaker

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// breaker is the state that the versions of a rule share.
//
// A closed breaker is asked, and counts outcomes, without a lock; so does an open one
// refuse. Everything else happens under the mutex. Time is what callers bring: there is
// no timer, so a probe that has timed out is found with the next call, end or Status.
type breaker struct {
	// Every call reads these. They are written under the mutex, and so that whoever
	// reads the state first and then refuseUntil refuses nobody for too long.
	current     atomic.Pointer[limiter] // the version in force
	state       atomic.Uint64           // a state
	refuseUntil atomic.Int64            // earlier calls are refused, unless it is closed
	_           [40]byte                // so that writing the window does not touch their cache line

	window window // written at the end of every call

	mu sync.Mutex
	// The mutex guards the rest.
	since     clock.Instant // when the state began
	doublings int           // of the time for which it is open
	ruled     clock.Instant // when the version in force came

	// Of a half-open breaker.
	probes    []clock.Instant // when those under way passed; noProbe for free places
	underWay  int             // how many they are
	endedWell int             // how many others ended well
	lastProbe clock.Instant   // when it was last asked for a probe, or one ended

	changes   []change // to be reported
	reporting bool     // somebody does
}

const (
	always  = clock.Instant(math.MaxInt64)
	never   = clock.Instant(math.MinInt64)
	noProbe = never
)

func (b *breaker) present() state { return state(b.state.Load()) }

func newBreaker(l *limiter, now clock.Instant) *breaker {
	b := &breaker{since: now, ruled: now, probes: l.spare, changes: make([]change, 0, 4)}
	l.spare = nil
	b.current.Store(l)
	b.refuseUntil.Store(int64(never))
	b.state.Store(uint64(closed.next(closed)))
	b.window.recent.Store(frozen)
	b.window.clear(now, l.bucket)
	b.window.resume()
	return b
}

// admit decides on a call that is not simply let through or refused.
func (b *breaker) admit(l *limiter, now clock.Instant) (rule.Ticket, rule.Decision) {
	b.mu.Lock()
	defer b.unlock()
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

// count counts how a call has ended, without a lock. It returns false when that takes
// one: the state changes, or has changed, or another bucket begins.
func (b *breaker) count(t rule.Ticket, e rule.Exit) bool {
	w := &b.window
	for {
		// This is read first: if anything else changes after it, the swap fails.
		recent := w.recent.Load()
		if b.state.Load() != uint64(t) || recent&frozen != 0 {
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

// end is how a call ends that cannot just be counted.
func (b *breaker) end(t rule.Ticket, e rule.Exit) {
	if s := b.present(); !isOf(t, s) && s.code() != halfOpen {
		return // the call passed before the state last changed
	}
	b.mu.Lock()
	defer b.unlock()
	b.timeOut(e.Now - 1) // one that ends just when it would time out has ended in time
	if !isOf(t, b.present()) {
		return
	}
	if outcome := b.current.Load().judge(e); isProbe(t) {
		b.endProbe(t, e.Now, outcome)
	} else if outcome != unknown {
		b.endCall(e.Now, outcome)
	}
}

// endCall counts an outcome of a closed breaker, which opens if it is one too many.
func (b *breaker) endCall(now clock.Instant, o outcome) {
	w := &b.window
	w.freeze()
	if w.count(now, o) && b.current.Load().opens(w.calls.Load(), w.bad.Load()) {
		b.enter(open, now)
		return
	}
	w.resume()
}

// enter changes the state. What passed before does not count from now on.
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
		b.changes = append(b.changes, change{l.changed, b.since, before.name(), after.name()})
	}
}

// refuse brings refuseUntil up to date.
func (b *breaker) refuse() {
	b.refuseUntil.Store(int64(b.refusal(b.present().code())))
}

// refusal returns until when all calls are refused in a state.
func (b *breaker) refusal(code state) clock.Instant {
	l := b.current.Load()
	switch code {
	case open:
		return b.since.Add(l.openTime(b.doublings))
	case forcedOpen:
		return always
	case halfOpen:
		if b.underWay > 0 && b.underWay+b.endedWell >= l.probes {
			return b.due() // it may have opened then
		}
	}
	return never
}

// bringIntoForce makes the breaker go by another version of the rule; false if that is
// older than the present one.
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
		b.window.clear(now, l.bucket) // what it counted was counted otherwise
	}
	b.current.Store(l)
	b.ruled = max(b.ruled, now)
	b.refuse()
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
	b.timeOut(now - 1) // it may still end at this instant
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

// forgetAfter is how long a breaker that is not closed is remembered although nobody
// calls, from when it could have probed. Otherwise resources that nobody calls any more
// would be kept for ever.
const forgetAfter = 10 * time.Minute

// idle changes nothing and reports nothing: the engine looks while it is locked itself.
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
