package breaker

import (
	"math/big"
	"math/bits"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule, compiled. All versions share one breaker, which has
// the state.
type limiter struct {
	breaker *breaker
	version uint64
	changed func(at clock.Instant, from, to, because string)

	minCalls uint64
	// The breaker opens at a share of bad calls of num/den or, if den is 0, at num bad
	// calls.
	num, den     uint64
	slowAfter    time.Duration // 0 if the rule is about failures
	bucket       time.Duration // 0 if the last calls count
	last         int           // how many; 0 if a time counts
	inARow       bool          // all of the last calls have to be bad
	openFor      time.Duration
	maxOpenFor   time.Duration
	probes       int
	probeTimeout time.Duration

	// The breaker opens again at a share of bad probes of probeNum/probeDen or, if probeDen is 0, at the
	// first.
	probeNum, probeDen uint64

	// spare is a table for the probes of this version, until it comes into force.
	spare []probePlace
}

func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	l := compile(r, env)
	l.breaker = newBreaker(l, env.Now, env.Forced)
	return l
}

// adopt returns a new version of the rule of the present limiter, with the same
// state. It comes into force when it is activated or asked about a call.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	old, ok := present.(*limiter)
	if !ok {
		return nil
	}
	l := compile(r, env)
	l.breaker = old.breaker
	return l
}

// compile makes a limiter, without a breaker yet, of a rule that is valid and complete.
func compile(r *Rule, env rule.Env) *limiter {
	l := &limiter{
		version:      env.Version,
		changed:      env.Changed,
		minCalls:     uint64(r.MinCalls),
		slowAfter:    r.SlowAfter,
		bucket:       r.Window / buckets,
		last:         r.WindowCalls,
		openFor:      r.OpenFor,
		maxOpenFor:   r.MaxOpenFor,
		probes:       r.Probes,
		probeTimeout: r.ProbeTimeout,
		spare:        make([]probePlace, r.Probes),
	}
	switch r.Strategy {
	case ErrorCount:
		l.num = uint64(r.Threshold)
	case Consecutive: // so many of the last so many
		l.num, l.last, l.inARow = uint64(r.Threshold), int(r.Threshold), true
	default:
		l.num, l.den = fraction(r.Threshold)
	}
	if r.ProbeThreshold > 0 {
		l.probeNum, l.probeDen = fraction(r.ProbeThreshold)
	}
	return l
}

// fraction returns the shortest decimal that reads as the ratio, as a fraction: 3/10
// for 0.3. From minRatio on it has at most 19 decimal places, which fit.
func fraction(ratio float64) (num, den uint64) {
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(ratio, 'g', -1, 64))
	if !ok {
		panic("breaker: not a ratio: " + strconv.FormatFloat(ratio, 'g', -1, 64)) // Validate refuses it
	}
	return exact.Num().Uint64(), exact.Denom().Uint64()
}

// opens says whether bad calls among so many reach the threshold.
func (l *limiter) opens(calls, bad uint64) bool {
	if calls < l.minCalls || bad == 0 {
		return false
	}
	if l.den == 0 {
		return bad >= l.num
	}
	return reaches(bad, calls, l.num, l.den)
}

// failsProbing says whether so many bad probes are too many.
func (l *limiter) failsProbing(bad, probes int) bool {
	if l.probeDen == 0 || bad == 0 {
		return bad > 0
	}
	return reaches(uint64(bad), uint64(probes), l.probeNum, l.probeDen)
}

// reaches says whether a part is at least num/den of all.
func reaches(part, all, num, den uint64) bool {
	high, low := bits.Mul64(part, den)
	thresholdHigh, thresholdLow := bits.Mul64(all, num)
	return high > thresholdHigh || high == thresholdHigh && low >= thresholdLow
}

// judge returns the outcome of a call, by what the rule is about.
func (l *limiter) judge(e *rule.Exit) outcome {
	switch {
	case l.slowAfter > 0 && e.LongLived:
		return unknown // how long it lasted tells nothing
	case l.slowAfter > 0 && e.Took() > l.slowAfter, l.slowAfter == 0 && e.Failed:
		return bad
	case e.Ignored:
		return unknown // it was not slow, or had not failed, so far
	}
	return good
}

// outcome is how a call ended.
type outcome uint8

const (
	good outcome = 0 // the numbers are those of bad calls that an outcome counts as
	bad  outcome = 1

	unknown outcome = 2 // does not count
)

// openTime returns how long the breaker stays open after so many doublings.
func (l *limiter) openTime(doublings int) time.Duration {
	d := l.openFor
	for ; doublings > 0 && d < l.maxOpenFor; doublings-- {
		d = min(2*d, l.maxOpenFor)
	}
	return d
}

// Acquire lets calls pass while the breaker is closed, and probes while it is
// half-open. It takes a lock only to let a probe pass, and at a change of state.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if b := l.breaker; l.slowAfter == 0 && b.current.Load() == l {
		if s := b.present(); s.code() == closed {
			return s.ticket(), rule.Pass
		}
	}
	return l.acquire(c)
}

// acquire is Acquire for all calls but those of a closed breaker that watches none.
func (l *limiter) acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	b := l.breaker
	if b.current.Load() == l {
		s, until := b.present(), clock.Instant(b.refuseUntil.Load())
		switch code := s.code(); {
		case code == closed && l.slowAfter == 0: // it was not a moment ago
			return s.ticket(), rule.Pass
		case code == closed && c.Now < clock.Instant(b.nextDue.Load()):
			if t, ok := b.watch(l, c, s); ok && (isWatched(t) || c.LongLived() || b.running.Load().isLarge()) {
				return t, rule.Pass
			}
		case code == open && c.Now < until: // what l.refuse would find out
			return rule.RetryTicket(until.Sub(c.Now)), rule.Block
		case c.Now < until:
			return l.refuse(c.Now)
		case code == forcedClosed:
			return notCounted, rule.Pass
		}
	}
	t, decision := b.admit(l, c)
	if decision == rule.Block {
		return l.refuse(c.Now)
	}
	return t, decision
}

// refuse refuses a call. The ticket tells how long it takes until such a call passes.
func (l *limiter) refuse(now clock.Instant) (rule.Ticket, rule.Decision) {
	return rule.RetryTicket(l.retryAfter(now)), rule.Block
}

// Done counts the outcome of a call, unless the state has changed since the call passed.
func (l *limiter) Done(t rule.Ticket, e rule.Exit) {
	b := l.breaker
	if e.Now > clock.Instant(b.nextDue.Load()) { // what becomes slow at this instant may still end
		b.look(e.Now - 1)
	}
	if isWatched(t) {
		t = b.ended(t)
	}
	if !b.count(t, e) {
		b.end(t, e)
	}
}

// MarkLongLived has a call that is under way not become slow.
func (l *limiter) MarkLongLived(t rule.Ticket) { l.breaker.markLongLived(t) }

// GiveBack frees the place of a probe or the slot of a call. Other calls take nothing.
func (l *limiter) GiveBack(now clock.Instant, t rule.Ticket, _ int32) {
	switch {
	case isProbe(t):
		l.breaker.giveBack(t, now)
	case isWatched(t):
		l.breaker.running.Load().remove(t)
	}
}

// RetryAfter returns how long an open breaker stays open, Never if it is forced open, and
// otherwise 0: how the probes of a half-open breaker will end is unknown.
func (l *limiter) RetryAfter(c rule.Call) time.Duration { return l.retryAfter(c.Now) }

func (l *limiter) retryAfter(now clock.Instant) time.Duration {
	b := l.breaker
	s := b.present()
	if s.code() == closed && now >= clock.Instant(b.nextDue.Load()) || s.code() == halfOpen && now >= clock.Instant(b.refuseUntil.Load()) {
		s = b.timedOut(now)
	}
	switch s.code() {
	case forcedOpen:
		return rule.Never
	case open:
		if until := clock.Instant(b.refuseUntil.Load()); now < until {
			return until.Sub(now)
		}
	}
	return 0
}

// Status returns the state. If a probe has timed out it reports that the breaker opened.
func (l *limiter) Status(now clock.Instant) rule.Status { return l.breaker.status(now) }

// Idle says whether a new breaker would do as well: it is closed and its window is empty,
// or it could have probed for ten minutes and nobody has called.
func (l *limiter) Idle(now clock.Instant) bool { return l.breaker.idle(now) }

// Activate brings this version of the rule into force, unless a later one is.
func (l *limiter) Activate(now clock.Instant) {
	b := l.breaker
	b.mu.Lock()
	defer b.unlock()
	b.bringIntoForce(l, now)
}

// Control forces the breaker closed or open. An empty state releases it, which closes
// it with an empty window. Releasing a breaker that is not forced does nothing, and
// neither does any other state.
func (l *limiter) Control(now clock.Instant, state string) { l.breaker.control(now, state) }

// The engine looks for these interfaces.
var (
	_ rule.Finisher     = (*limiter)(nil)
	_ rule.Activator    = (*limiter)(nil)
	_ rule.Controllable = (*limiter)(nil)
	_ optional.Watcher  = (*limiter)(nil)
)
