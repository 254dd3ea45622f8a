package memory

import (
	"math"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/fleet"
)

// A bucket is kept as the time at which it will be full, in microseconds, which is the
// theoretical arrival time of the generic cell rate algorithm.

// longest is the most that tokens may cost: 31 years. So all times are exact as doubles.
const longest = 1e15

// jumped and owed are how much later a bucket may be full than grants can have brought about,
// in microseconds and in tokens that passed on debt, whichever is more: still more tells that
// the clock has jumped back.
const (
	jumped = 1_000_000
	owed   = 16
)

// rate is how fast a bucket fills.
type rate struct {
	limit  float64 // tokens per window
	window float64 // in microseconds
}

func rateOf(t *fleet.Terms) rate {
	return rate{limit: t.Limit, window: float64(t.Window.Microseconds())}
}

// cost is the time in which n tokens fill.
func (r rate) cost(n float64) int64 { return int64(min(math.Ceil(n*r.window/r.limit), longest)) }

// refund is the time that n tokens which come back are worth: no more than they cost.
func (r rate) refund(n float64) int64 { return int64(min(math.Floor(n*r.window/r.limit), longest)) }

// fits is the greatest number of tokens that cost no more than some time.
func (r rate) fits(remaining int64) int64 {
	if remaining <= 0 {
		return 0
	}
	n := min(math.Floor(float64(remaining)*r.limit/r.window), fleet.MaxTokens)
	switch {
	case r.cost(n+1) <= remaining:
		n++
	case r.cost(n) > remaining:
		n--
	}
	return int64(n)
}

// fullAt returns when a bucket is full, at least now. A time too far ahead is cut off, so
// that nothing is refused for long after the clock has jumped back.
func (s *Store) fullAt(now int64, k key, seen string, ahead, slack int64) (stored value, full int64) {
	if v := s.value(now, k); v != nil {
		stored = *v
	}
	mark, _ := strconv.ParseInt(seen, 10, 64) // none, or one of another mode, tells nothing
	return stored, max(now, min(max(stored.full, mark), now+ahead+slack))
}

// burstOfAll is the burst, as time, that counts for all instances: the least of those by which they have asked
// of late. A longer one, as the same burst is at a lower limit, would leave the others nothing.
type burstOfAll struct {
	length int64 // in microseconds
	until  int64 // in milliseconds
}

// For how many milliseconds a burst counts, when that is renewed, and the longest that is kept, in microseconds:
// three years.
const (
	burstLife    = 1000
	burstRenewal = 500
	longestBurst = 1e14 - 1
)

// take takes the burst by which an instance asks, and returns that by which it is answered: at least what the
// request needs if it is within its own.
func (b *burstOfAll) take(now, own, needed int64) int64 {
	now /= 1000
	kept := min(own, longestBurst)
	switch {
	case b.until > now && b.until <= now+burstLife && b.length < kept: // or the clock has jumped back
		return max(b.length, min(own, needed))
	case b.length != kept || b.until < now+burstRenewal:
		*b = burstOfAll{kept, now + burstLife}
	}
	return own
}

func (s *Store) putBucket(now int64, k key, stored, present value, keep time.Duration) {
	switch {
	case present.full == stored.full && present.burst == stored.burst:
	case present.full > now:
		s.put(now, k, &present, present.full-now, keep)
	default:
		delete(s.values, k)
	}
}

func (s *Store) leaseBucket(now int64, r *fleet.Request) fleet.Reply {
	if r.Terms.Limit == 0 {
		return fleet.Reply{Retry: fleet.Never, State: r.Seen}
	}
	k := key{bucketShape, r.Terms.Key}
	rate, queue := rateOf(&r.Terms), r.Queue.Microseconds()
	burst := rate.cost(r.Terms.Burst)
	stored, full := s.fullAt(now, k, r.Seen, burst+queue, max(jumped, rate.cost(owed)))
	full = max(now, full-rate.refund(float64(r.Back)))
	full += rate.cost(float64(r.Owed))

	var reply fleet.Reply
	need, own, of := min(r.Want, max(1, r.Quantum), max(1, rate.fits(burst+queue))), burst, stored.burst
	burst = of.take(now, own, rate.cost(float64(need))-queue)
	remaining := burst + now - full // as a time
	delay := max(0, rate.cost(float64(need))-remaining)
	switch {
	case r.Want == 0:
	case delay == 0:
		reply.Granted = min(r.Want, rate.fits(remaining))
	case delay <= queue:
		reply.Granted, reply.Delay = need, micros(delay)
	case rate.cost(float64(need)) > own+queue:
		reply.Retry = fleet.Never
	default:
		reply.Retry = micros(delay - queue)
	}
	if reply.Granted > 0 {
		full += rate.cost(float64(reply.Granted))
	}
	s.putBucket(now, k, stored, value{full: full, burst: of}, r.Keep)
	reply.State = strconv.FormatInt(full, 10)
	return reply
}

// askBucket takes all tokens or none, from a bucket or, up to MaxWait ahead, from a
// throttle.
func (s *Store) askBucket(now int64, r *fleet.Request) fleet.Reply {
	if r.Terms.Limit == 0 {
		return fleet.Reply{Retry: fleet.Never, State: r.Seen}
	}
	k := key{bucketShape, r.Terms.Key}
	rate, wait, tokens := rateOf(&r.Terms), int64(0), r.Terms.Burst
	if r.Operation == fleet.AskThrottle {
		wait, tokens = r.Terms.MaxWait.Microseconds(), max(1, tokens)
	}
	burst := rate.cost(tokens)
	stored, full := s.fullAt(now, k, "", burst+wait, jumped)

	if r.Owed > 0 {
		full += rate.cost(float64(min(r.Owed, rate.fits(burst+wait+now-full))))
	}
	reply, of := fleet.Reply{Limit: rate.fits(burst)}, stored.burst
	upTo := of.take(now, max(0, burst-rate.cost(1)), 0) // so that calls come in turn, whatever each costs
	if r.Want < 0 {
		full = max(now, full-rate.refund(float64(-r.Want)))
	} else {
		cost := rate.cost(float64(r.Want))
		delay := max(0, cost-(min(burst, upTo+cost)+now-full))
		switch {
		case delay <= wait:
			reply.Granted, reply.Delay = r.Want, micros(delay)
			full += cost
		case cost > burst+wait:
			reply.Retry = fleet.Never
		default:
			reply.Retry = micros(delay - wait)
		}
	}
	s.putBucket(now, k, stored, value{full: full, burst: of}, r.Keep)
	reply.Remaining = rate.fits(min(burst, upTo+rate.cost(1)) + now - full)
	reply.Reset = micros(full - now)
	return reply
}
