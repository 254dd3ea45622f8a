// Package share is the limits of which each instance of a fleet has a part by its demand, see [fleet.ModeShare].
package share

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// Share is the part of a limit that this instance may use by itself, see [fleet.ModeShare]. Who
// decides on calls has a limiter of its own, whose limit is Limit, and counts all calls.
//
// The instances announce their demand, and each computes by it what every instance should
// have. It lowers its own part at once, and raises it only to what no other one has
// reserved when the backend has made its own reservation known. So all parts together never
// exceed the limit, however late, lost or different the answers are. A reservation is at
// least what has passed in the last window, so this is also true of what passes in any
// window while parts move, but for what instances passed that have left more than 10 s ago.
// [fleet.Terms.Burst] takes the place of a window in limits that have one and no [fleet.Terms.Buckets].
//
// An instance to which a limit is new has what is free of it at once, up to an even part, if it
// has known all instances for some time, and none has left meanwhile. That time is a window,
// but 1.5 s at least and 10 s at most. If an instance has given up the limit within that time,
// and is still there, what it has passed counts as free. Any other instance that joins has a
// hundredth of an even part on top until the others have made room. One that cannot reach the
// backend goes on as [fleet.OnOutage] says: with OutageLast, it keeps its part, which the others
// take over after [fleet.AnnounceLife]. If it has never reached the backend, it has an even part if
// [fleet.Config.Instances] says of how many, else a hundredth of the limit, unless OutageOpen or
// OutageClosed say otherwise.
//
// All methods may be called concurrently.
type Share struct {
	limit atomic.Uint64 // the bits of a float64, see Limit
	set   *Shares
	_     [48]byte

	// What calls asked for: a call writes one of the two.
	passed  atomic.Int64
	refused atomic.Int64
	_       [48]byte

	mu       sync.Mutex // guards what follows
	terms    fleet.Terms
	onOutage fleet.OnOutage
	demand   demand
	err      error

	// Parts are fractions of the limit, from 0 to 1, so that instances with other terms agree.
	granted  float64 // what this instance may use
	wanted   float64 // what it should have, as of the last answer
	reserved float64 // announced last, at least granted and what passed in the last window

	count      int               // of instances with this limit, this one included; 0 before the first answer
	others     map[string]*other // the other ones, by ID
	answered   bool              // the announcement that was sent last
	answeredAt clock.Instant     // of the last answer
	settledAt  clock.Instant     // before which nothing is raised above even, see settleTime
	expected   int               // instances known when the limit began here, 0 if not all were; see even
	doubtUntil clock.Instant     // before which nothing is raised above doubtful
	doubtful   float64
	outage     bool
	outageAt   clock.Instant
}

// other is what is known of another instance with the same limit.
type other struct {
	reserved  float64
	beside    float64       // what was known to be reserved here at the same time
	missing   bool          // in the last answer
	missingAt clock.Instant // since when
}

const (
	// announceTime is within what time all instances announce themselves, to a backend that
	// has lost what it knew as well.
	announceTime = 3 * exchange.AnnounceInterval / 2

	// maxSettleTime is the longest settleTime.
	maxSettleTime = 10 * time.Second

	// startPart is what instances without a part have, of an even one.
	startPart = 0.01

	// tolerance is by which fraction a part may be too large before it is lowered.
	tolerance = 0.02
)

// New returns the part of this instance of a limit. Release ends it.
func (set *Shares) New(terms fleet.Terms, onOutage fleet.OnOutage, now clock.Instant) *Share {
	s := &Share{set: set, terms: terms, onOutage: onOutage, others: make(map[string]*other), answered: true}
	s.demand.measuredAt, s.demand.askedAt = now, now
	s.publish()
	set.add(s, now)
	return s
}

// Limit returns the tokens per window that this instance may use now: 0 if none, infinite
// if all calls pass, as [fleet.OutageOpen] says.
func (s *Share) Limit() float64 { return math.Float64frombits(s.limit.Load()) }

// Count counts a call that asked for n tokens at now, as demand. A call that was counted and
// takes nothing after all is taken back with -n.
func (s *Share) Count(_ clock.Instant, n int32, passed bool) {
	if passed {
		s.passed.Add(int64(n))
	} else {
		s.refused.Add(int64(n))
	}
}

// Change has the limit go on with other terms, of the same key.
func (s *Share) Change(terms fleet.Terms, onOutage fleet.OnOutage, _ clock.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms, s.onOutage = terms, onOutage
	s.publish()
}

// Idle says whether nothing was asked of late: for 10 s, or a window.
func (s *Share) Idle(now clock.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.demand
	return s.passed.Load()+s.refused.Load() == d.askedTotal && now.Sub(d.askedAt) >= max(s.terms.Window, 10*time.Second)
}

// Release says that nobody will use the share any more. The limiter must refuse from then on.
func (s *Share) Release(now clock.Instant) { s.set.remove(s, now) }

// Status tells how the limit is at now.
func (s *Share) Status(now clock.Instant) fleet.LimitStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure(now)
	status := fleet.LimitStatus{
		Key: s.terms.Key, Mode: fleet.ModeShare, OnOutage: s.onOutage,
		Limit: s.terms.Limit, Window: s.terms.Window,
		Granted: s.Limit() / s.terms.Window.Seconds(), Demand: s.demand.asked, Passed: s.demand.passed,
		Outage: s.outage, Err: s.err,
	}
	if s.outage {
		status.Since = s.outageAt
	}
	return status
}

// lost notes that the backend does not answer any more. The member calls it with its mutex
// held.
func (s *Share) lost(now clock.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.outage {
		s.outage, s.outageAt = true, now
	}
	s.publish()
}

// publish puts the limit in force.
func (s *Share) publish() {
	count := float64(max(1, s.count))
	part := min(1, max(s.granted, startPart/count))
	if s.outage {
		switch {
		case s.onOutage == fleet.OutageOpen && s.terms.Limit > 0:
			part = math.Inf(1)
		case s.onOutage == fleet.OutageClosed:
			part = 0
		case s.onOutage == fleet.OutageShare && s.count > 0:
			part = 1 / count
		case s.count == 0 && s.set.Expected() > 0: // it has never reached the backend
			part = max(part, 1/float64(s.set.Expected()))
		}
	}
	limit := s.terms.Limit
	if math.IsInf(part, 1) {
		limit = 1
	}
	s.limit.Store(math.Float64bits(part * limit))
}

// measure brings the demand up to now.
func (s *Share) measure(now clock.Instant) {
	passed := s.passed.Load()
	s.demand.measure(now, passed+s.refused.Load(), passed, s.terms.Window)
	s.demand.history.record(now, passed, s.horizon())
}

// spent returns the fraction of the limit that has passed within the horizon.
func (s *Share) spent() float64 {
	if s.terms.Limit <= 0 {
		return 0
	}
	return min(1, float64(s.demand.history.within(s.passed.Load()))/s.terms.Limit)
}

// settleTime is how long an instance raises nothing after it has joined, and for how long what
// an instance had reserved that is missing counts: until all instances have announced
// themselves, and what those have passed that are gone has left the window.
func (s *Share) settleTime() time.Duration {
	return min(max(s.horizon(), announceTime), maxSettleTime)
}

// horizon is for how long what has passed counts: a window, or until a burst is full again.
func (s *Share) horizon() time.Duration {
	if perSecond := s.terms.PerSecond(); s.terms.Buckets == 0 && s.terms.Burst > 0 && perSecond > 0 {
		return time.Duration(min(s.terms.Burst/perSecond, s.terms.Window.Seconds()) * float64(time.Second))
	}
	return s.terms.Window
}
