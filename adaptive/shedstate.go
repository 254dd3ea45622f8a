package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const (
	// updateEvery is the least time between updates.
	updateEvery = 100 * time.Millisecond

	// An update waits for so many arrivals, but not longer than that.
	updateArrivals = 20
	updateAtLatest = time.Second
)

// shedControl decides what a rule lets pass. It is called under the mutex of the shedState.
type shedControl interface {
	// update returns what is to pass from now on, by what has happened since the last time.
	update(now clock.Instant, l *shedLimiter, i *interval) verdict

	// adopt goes on with another version of the rule.
	adopt(r *Rule)

	// gauges returns the limit on calls under way and the mean response time of the service
	// when it is not busy; NaN for what is not known.
	inForce() float64 // the limit on calls under way; NaN if there is none
}

// verdict is what may pass.
type verdict struct {
	limit uint32        // calls under way; noLimit for any number
	rate  float64       // calls in a second, which only the threshold limits; +Inf for any number
	qps   float64       // calls in a second, which have a limit of their own; 0 for any number
	next  time.Duration // until the next update; updateEvery if it is 0
}

// interval is what has happened since the last update.
type interval struct {
	length   time.Duration
	admitted float64
	good     float64 // calls that ended without failing
	counted  float64 // calls that ended and whose response times count
	took     float64 // the sum of these response times, ns
	refused  float64
	underWay float64
}

// arrived returns how many calls came.
func (i *interval) arrived() float64 { return i.admitted + i.refused }

// shedState is what all versions of a rule share. Calls are counted without a lock. A call
// that arrives when an update is due makes it, unless another one does.
type shedState struct {
	// Every call reads these; updates write them.
	current    atomic.Pointer[shedLimiter] // the version in force
	next       atomic.Int64                // the instant at which an update is due
	limitsWord atomic.Uint64               // limits
	shed       *shed.Threshold
	_          [24]byte

	// Every call writes these.
	calls     atomic.Uint64 // low 32 bits: calls under way; high 32 bits: calls that have ended
	took      atomic.Uint64 // the sum of response times, ns
	uncounted atomic.Uint64 // calls that have ended and do not count in it
	notGood   atomic.Uint64 // calls that have failed, or of which it is not known
	edgeFull  atomic.Uint64 // calls that were refused although the threshold let them pass
	extra     atomic.Int64  // tokens of calls that passed, beside one of each
	_         [16]byte

	mu      sync.Mutex // guards what follows, and updates
	control shedControl
	before  totals   // at the last update
	since   interval // what has happened between the last two updates
	recent  traffic
	every   time.Duration // the least time until the next update
	share   float64       // of the arrivals that is to pass so that few meet the limit
	needed  clock.Instant // when the threshold was last needed
	strict  bool          // calls below the threshold are refused however few are under way
	unknown int           // signals that cannot be read
}

// oneEnd is what a call that ends adds to the word, beside being under way no more.
const oneEnd = 1 << 32

func underWay(word uint64) uint32 { return uint32(word) }

// totals are counters at one instant.
type totals struct {
	at                                 clock.Instant
	word, took, uncounted, notGood     uint64
	refused, refusedUnsorted, edgeFull uint64
	extra                              int64
}

// newShedState gives a new limiter a state of its own.
func newShedState(l *shedLimiter, control shedControl, env rule.Env) {
	s := &shedState{control: control, shed: shed.New(env.Seed), share: 1, every: updateEvery}
	s.before.at = env.Now
	l.state = s
	s.current.Store(l)
	s.apply(control.update(env.Now, l, &interval{}))
	s.next.Store(int64(env.Now.Add(s.every)))
}

func (s *shedState) limits() limits { return limits(s.limitsWord.Load()) }

// isFull says whether no call passes, wherever it stands.
func (s *shedState) isFull() bool { return underWay(s.calls.Load()) >= s.limits().of(shed.Above) }

// standing returns where a call stands. Seen says that calls are shed, and that its arrival
// is counted.
func (s *shedState) standing(c *rule.Call) (standing shed.Standing, seen bool) {
	state := s.shed.Load()
	if !state.Active() {
		return shed.Above, false
	}
	return s.shed.Standing(state, c, s.calls.Load()^uint64(c.Now)), true
}

// refuse counts a refused call.
func (s *shedState) refuse(c *rule.Call, standing shed.Standing, seen bool) {
	s.shed.Refuse(c.Priority(), seen)
	if seen && standing != shed.Below {
		s.edgeFull.Add(1)
	}
	if !s.shed.Load().Active() {
		s.start(c.Now)
	}
}

// start has the ranks of arrivals counted.
func (s *shedState) start(now clock.Instant) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.startLocked(now)
}

func (s *shedState) startLocked(now clock.Instant) {
	if s.shed.Load().Active() {
		return
	}
	s.recent = traffic{}
	s.needed = now
	s.shed.Start(now)
}

// activate makes another version the one in force. It returns false if that version is
// older than the present one.
func (s *shedState) activate(l *shedLimiter, now clock.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := s.current.Load()
	if present.version >= l.version {
		return present == l
	}
	s.control.adopt(&l.rule)
	if l.qps != nil {
		l.qps.setLimit(l.rule.QPS)
	}
	s.current.Store(l)
	s.apply(s.control.update(now, l, &interval{}))
	return true
}

// update makes an update if it is due, unless another goroutine does.
func (s *shedState) update(now clock.Instant) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if int64(now) < s.next.Load() {
		return
	}
	after := s.totals(now)
	s.since = s.before.until(&after)
	i := &s.since
	s.next.Store(int64(now.Add(s.every)))
	if i.arrived() < updateArrivals && i.length < updateAtLatest {
		return
	}
	s.recent.add(i, &s.before, &after)
	s.before = after
	l := s.current.Load()
	v := s.control.update(now, l, i)
	s.share = s.recent.gateShare(s.share, v.limit)
	share, rate := s.share, s.recent.arrivalRate()
	wanted := v.rate
	if v.qps > 0 {
		wanted = min(wanted, v.qps*headroom(v.qps))
	}
	if s.strict = wanted < rate; s.strict {
		share = min(share, wanted/rate)
	}
	s.move(now, share, v.rate < rate)
	s.apply(v)
	s.next.Store(int64(now.Add(s.every)))
}

// move moves the threshold, which is active only while calls are refused. Alone says that no
// limit refuses what it lets pass.
func (s *shedState) move(now clock.Instant, share float64, alone bool) {
	if share < 1 {
		s.startLocked(now)
	}
	if !s.shed.Load().Active() {
		return
	}
	if share < 1 || s.recent.refused >= 1 {
		s.needed = now
	}
	if now.Sub(s.needed) > restAfter {
		s.shed.Stop()
		return
	}
	if alone {
		s.shed.Move(now, share)
	} else {
		s.shed.MoveBetween(now, share)
	}
}

// apply puts limits in force.
func (s *shedState) apply(v verdict) {
	if s.every = v.next; s.every == 0 {
		s.every = updateEvery
	}
	above, edge, below := v.limit, v.limit, v.limit
	if v.limit != noLimit {
		edge = v.limit - reserveFor(v.limit, s.shed.RateAbove()*s.recent.mean())
		below = max(edge/2, edge-min(edge, uint32(math.Ceil(math.Sqrt(float64(edge))))))
	}
	if s.strict {
		below = 0
	}
	s.limitsWord.Store(uint64(makeLimits(above, edge, below)))
	if qps := s.current.Load().qps; qps != nil {
		qps.reserveFor(s.shed.RateAbove(), 1+s.recent.extra/max(1, s.recent.admitted))
	}
}

// totals returns the counters.
func (s *shedState) totals(now clock.Instant) totals {
	t := totals{at: now, uncounted: s.uncounted.Load(), notGood: s.notGood.Load(), took: s.took.Load(), edgeFull: s.edgeFull.Load(), extra: s.extra.Load()}
	t.word = s.calls.Load()
	t.refused, t.refusedUnsorted = s.shed.Totals()
	return t
}

// until returns what happened from one instant to another.
func (t *totals) until(after *totals) interval {
	ended := float64(uint32(after.word>>32) - uint32(t.word>>32))
	now := float64(underWay(after.word))
	return interval{
		length:   max(1, after.at.Sub(t.at)),
		admitted: max(0, ended+now-float64(underWay(t.word))),
		good:     max(0, ended-float64(after.notGood-t.notGood)),
		counted:  max(0, ended-float64(after.uncounted-t.uncounted)),
		took:     float64(after.took - t.took),
		refused:  float64(after.refused - t.refused),
		underWay: now,
	}
}

func (s *shedState) status() rule.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []float64{
		s.control.inForce(), float64(underWay(s.calls.Load())), math.NaN(), math.NaN(), s.shed.Share(), float64(s.unknown),
	}
	for _, p := range rule.Priorities() {
		list = append(list, float64(s.shed.Refused(p)))
	}
	return rule.Status{Gauges: list}
}

func (s *shedState) idle(now clock.Instant) bool {
	return underWay(s.calls.Load()) == 0 && now >= clock.Instant(s.next.Load()).Add(idleAfter)
}
