package flow

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Follow lowers the limit of a rule while a signal is high. Up to From the limit is
// that of the rule; it falls linearly to Least, which it has from To on. If the signal
// cannot be read, the limit is that of the rule. The zero value follows nothing.
//
// A window goes over to another limit with the first call after the signal was
// sampled, a queue with the first call that comes, leaves, or looks whether it may pass.
// They keep what they have counted, as after a reload with that limit.
type Follow struct {
	// Signal is one of the signals of package rule, or one that the program has itself.
	Signal rule.Signal

	// From and To are the numbers of the signal between which the limit falls, from 0 to
	// 1e12. To is greater than From; a signal of the program's own may also fall,
	// from a greater From to a smaller To.
	From, To float64

	// Least is the limit at To, in tokens per window: greater than 0 and less than the
	// limit of the rule.
	Least float64
}

// maxSignal is the greatest number of a signal that a limit can follow.
const maxSignal = 1e12

// limit returns the limit in tokens per window while the signal shows a number, of a
// rule of that limit.
func (f *Follow) limit(written, shown float64) float64 {
	share := (shown - f.From) / (f.To - f.From)
	switch {
	case share <= 0:
		return written
	case share >= 1:
		return f.Least
	}
	// Rounding makes 550 of 0.8 between 0.7 and 0.9, rather than 549.9999999999999.
	const parts = 1e9
	return written - (written-f.Least)*(math.Round(share*parts)/parts)
}

// follower makes a version of a rule for each limit that its source brings. The versions come
// into force one after the other, in the order in which the source told the limits.
type follower struct {
	written *compiledRule // the rule as it was written
	source  limitSource
	present atomic.Pointer[compiledRule] // changed under mu

	mu sync.Mutex // held while a version is compiled
}

// limitSource tells which limit a rule has now, such as one that follows a signal. It is asked
// on the way of every call, concurrently.
type limitSource interface {
	// limit returns tokens per window, at most as many as the rule allows as written.
	limit() float64

	// apply gives the rule a limit, and changes what else depends on the source.
	apply(r *Rule, limit float64)
}

// withSource returns a copy of a compiled rule whose limit moves.
func (r *compiledRule) withSource(source limitSource) *compiledRule {
	moving := *r
	moving.follower = &follower{written: &moving, source: source}
	moving.follower.present.Store(&moving)
	return &moving
}

// signalSource is the limit of a rule that follows a signal.
type signalSource struct {
	follow  Follow
	written float64
	reading atomic.Pointer[rule.Reading] // nil until it is known
}

func (s *signalSource) limit() float64 {
	if reading := s.reading.Load(); reading != nil {
		if shown, ok := reading.Load(); ok {
			return s.follow.limit(s.written, shown)
		}
	}
	return s.written
}

func (s *signalSource) apply(r *Rule, limit float64) { r.Limit = limit }

// FollowSignal makes limiters of the rule follow the readings of its signal, if it
// follows one. Until then the limit is the rule's.
func (r *compiledRule) FollowSignal(signals rule.Signals) {
	if r.follower == nil {
		return
	}
	if s, ok := r.follower.source.(*signalSource); ok {
		s.reading.Store(signals.Reading(s.follow.Signal))
	}
}

// inForce returns the rule with the limit that its source brings; the rule itself if the
// limit does not move.
func (r *compiledRule) inForce() *compiledRule {
	if r.follower == nil {
		return r
	}
	return r.follower.inForce()
}

func (f *follower) inForce() *compiledRule {
	present := f.present.Load()
	if f.source.limit() == present.rule.Limit {
		return present
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// The source is asked again: another call may have brought a later limit.
	present = f.present.Load()
	if limit := f.source.limit(); limit != present.rule.Limit {
		present = present.moved(f.source, limit)
		f.present.Store(present)
	}
	return present
}

// moved returns the rule with another limit, as a newer version.
func (r *compiledRule) moved(source limitSource, limit float64) *compiledRule {
	next, moved := *r, *r.rule
	source.apply(&moved, limit)
	next.rule = &moved
	next.revision++
	next.compileLimit()
	return &next
}

// unfollowed returns a copy whose limit does not move, which no call brings.
func (r *compiledRule) unfollowed() *compiledRule {
	fixed := *r
	fixed.follower = nil
	return &fixed
}

// isBefore says whether a version of the rule is older than another one.
func (r *compiledRule) isBefore(other *compiledRule) bool {
	if r.version != other.version {
		return r.version < other.version
	}
	return r.revision < other.revision
}

// mayPassLater says whether a call of n tokens, which are more than the present limit, can
// pass when its source allows for more.
func (r *compiledRule) mayPassLater(n int32) bool {
	return r.follower != nil && int64(n) > r.most && int64(n) <= r.follower.written.most
}

// catchUp goes over to the limit that its source brings at now, and returns the
// version of the rule in force. The mutex is held.
func (w *window) catchUp(now clock.Instant) *compiledRule {
	present := w.compiled.Load()
	next := present.inForce()
	if next != present {
		w.adopt(present, next, now)
	}
	return next
}

// lookAgain is how often the first call in a queue looks whether the limit has moved.
const lookAgain = 250 * time.Millisecond

// untilHeadPasses returns how long the first call in the queue waits before it polls
// again: until it may pass, or until it looks whether it may pass earlier.
func (q *queue) untilHeadPasses(now clock.Instant) time.Duration {
	left := q.waiters.head.turn.at.Sub(now)
	if q.compiled.follower != nil {
		left = min(left, lookAgain)
	}
	return left
}

// catchUp goes over to the limit that its source brings at now, and lets the
// waiting calls pass whose time has come by then.
func (q *queue) catchUp(now clock.Instant) {
	if next := q.compiled.inForce(); next != q.compiled && q.before == nil && !q.retired {
		q.adopt(next, now)
	}
	q.advance(now)
}
