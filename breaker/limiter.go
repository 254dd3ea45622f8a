package breaker

import (
	"math/big"
	"math/bits"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule, compiled. Its versions share a breaker, which has
// the state.
type limiter struct {
	breaker *breaker
	version uint64
	changed func(at clock.Instant, from, to string)

	minCalls uint64
	// The share of bad calls that opens is num/den; a number of them is num, and den
	// is 0.
	num, den     uint64
	slowAfter    time.Duration // 0 if the rule is about failures
	bucket       time.Duration
	openFor      time.Duration
	maxOpenFor   time.Duration
	probes       int
	probeTimeout time.Duration

	// spare has room for the probes of this version, if the breaker needs it.
	spare []clock.Instant
}

func newLimiter(r Rule, env rule.Env) rule.Limiter {
	l := compile(r, env)
	l.breaker = newBreaker(l, env.Now)
	return l
}

// adopt returns a new version of the rule of the present limiter, with the same
// state. It comes into force when it is activated or asked about a call.
func adopt(present rule.Limiter, r Rule, env rule.Env) rule.Limiter {
	old, ok := present.(*limiter)
	if !ok {
		return nil
	}
	l := compile(r, env)
	l.breaker = old.breaker
	return l
}

// compile makes a limiter, without a breaker yet, of a rule that is valid and complete.
func compile(r Rule, env rule.Env) *limiter {
	l := &limiter{
		version:      env.Version,
		changed:      env.Changed,
		minCalls:     uint64(r.MinCalls),
		slowAfter:    r.SlowAfter,
		bucket:       r.Window / Buckets,
		openFor:      r.OpenFor,
		maxOpenFor:   r.MaxOpenFor,
		probes:       r.Probes,
		probeTimeout: r.ProbeTimeout,
		spare:        newProbes(r.Probes),
	}
	if r.Strategy == ErrorCount {
		l.num = uint64(r.Threshold)
	} else {
		l.num, l.den = fraction(r.Threshold)
	}
	return l
}

// fraction returns the shortest decimal that reads as the ratio, as a fraction: 3/10
// for 0.3. From MinRatio on it has at most 19 decimal places, which fit.
func fraction(ratio float64) (num, den uint64) {
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(ratio, 'g', -1, 64))
	if !ok {
		panic("breaker: not a ratio: " + strconv.FormatFloat(ratio, 'g', -1, 64)) // Validate refuses it
	}
	return exact.Num().Uint64(), exact.Denom().Uint64()
}

// opens says whether so many bad calls among so many are too many.
func (l *limiter) opens(calls, bad uint64) bool {
	if calls < l.minCalls || bad == 0 {
		return false
	}
	if l.den == 0 {
		return bad >= l.num
	}
	high, low := bits.Mul64(bad, l.den)
	thresholdHigh, thresholdLow := bits.Mul64(calls, l.num)
	return high > thresholdHigh || high == thresholdHigh && low >= thresholdLow
}

// judge says how a call has ended.
func (l *limiter) judge(e rule.Exit) outcome {
	switch {
	case l.slowAfter > 0 && e.Took() > l.slowAfter, l.slowAfter == 0 && e.Failed:
		return bad
	case e.Ignored:
		return unknown // it was not slow yet, or had not failed yet
	}
	return good
}

// outcome is how a call has ended, by what the rule is about.
type outcome uint8

const (
	good outcome = iota
	bad
	unknown // it does not count
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
// half-open. It takes no lock in the first case, nor to refuse.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	b := l.breaker
	if b.current.Load() == l {
		switch s := b.present(); {
		case s.code() == closed:
			return s.ticket(), rule.Pass
		case c.Now < clock.Instant(b.refuseUntil.Load()):
			return 0, rule.Block
		case s.code() == forcedClosed:
			return notCounted, rule.Pass
		}
	}
	return b.admit(l, c.Now)
}

// Done counts how a call has ended, unless the state has changed since it passed.
func (l *limiter) Done(t rule.Ticket, e rule.Exit) {
	if !l.breaker.count(t, e) {
		l.breaker.end(t, e)
	}
}

// GiveBack frees the place of a probe. Nothing else is taken of a breaker.
func (l *limiter) GiveBack(now clock.Instant, t rule.Ticket, _ int32) {
	if isProbe(t) {
		l.breaker.giveBack(t, now)
	}
}

// RetryAfter returns what is left of the time for which the breaker is open, and Never
// if it is forced open. While it is half-open that is 0: nobody knows how probes end.
func (l *limiter) RetryAfter(c rule.Call) time.Duration {
	b := l.breaker
	s := b.present()
	if s.code() == halfOpen && c.Now >= clock.Instant(b.refuseUntil.Load()) {
		s = b.timedOut(c.Now)
	}
	switch s.code() {
	case forcedOpen:
		return rule.Never
	case open:
		if until := clock.Instant(b.refuseUntil.Load()); c.Now < until {
			return until.Sub(c.Now)
		}
	}
	return 0
}

// Status tells the state. It may find that a probe has timed out, and report that.
func (l *limiter) Status(now clock.Instant) rule.Status { return l.breaker.status(now) }

// Idle says whether a new breaker would do as well: it is closed and no outcome counts
// any more, or nobody has called for a long time since it could have probed.
func (l *limiter) Idle(now clock.Instant) bool { return l.breaker.idle(now) }

// Activate brings this version of the rule into force, unless a later one is.
func (l *limiter) Activate(now clock.Instant) {
	b := l.breaker
	b.mu.Lock()
	defer b.unlock()
	b.bringIntoForce(l, now)
}

// Control forces the breaker closed or open. An empty state releases it, which closes
// it with an empty window; a breaker that is not forced stays as it is. Other states
// change nothing.
func (l *limiter) Control(now clock.Instant, state string) { l.breaker.control(now, state) }

// The engine finds these by their methods.
var (
	_ rule.Finisher     = (*limiter)(nil)
	_ rule.Activator    = (*limiter)(nil)
	_ rule.Controllable = (*limiter)(nil)
)
