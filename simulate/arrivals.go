package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// endless is later than every arrival.
const endless = time.Duration(math.MaxInt64)

// source makes the arrivals of one stream, one after the other.
type source struct {
	stream int
	next   time.Duration // when the next call arrives, if there is one

	from, until time.Duration
	rate        float64         // of an even or random stream
	times       []time.Duration // of one that has times: those that are left
	random      *rand.Rand      // of a random one
	count       int64           // arrivals made, the next included
	elapsed     float64         // of a random one: seconds from its start to the last arrival
}

// newSource returns the source of a stream whose calls come before end.
func newSource(load Load, stream int, end time.Duration) *source {
	of := load.Streams[stream]
	s := &source{stream: stream, from: of.From, until: end, rate: of.Rate}
	if of.Until > 0 {
		s.until = min(of.Until, end)
	}
	switch {
	case len(of.Times) > 0:
		s.times = slices.Sorted(slices.Values(of.Times))
	case of.Shape == Poisson:
		s.random = newRandom(load.Seed, randomGaps, stream, 0)
	}
	return s
}

// advance makes the next arrival; false if there is none.
func (s *source) advance() bool {
	switch {
	case len(s.times) > 0:
		s.next, s.times = s.times[0], s.times[1:]
	case s.rate == 0: // all the times are over
		return false
	case s.random != nil:
		s.elapsed += s.random.ExpFloat64() / s.rate
		s.next = s.after(s.elapsed * 1e9)
	default:
		s.next = s.after(float64(s.count) * 1e9 / s.rate)
	}
	s.count++
	return s.next < s.until
}

// after returns the time so many nanoseconds after the stream began.
func (s *source) after(nanoseconds float64) time.Duration {
	const most = float64(2 * MaxDuration) // beyond every end
	return s.from + time.Duration(math.Round(min(nanoseconds, most)))
}

// newArrivals returns the sources of a load in the order of their next calls.
func newArrivals(load Load, end time.Duration) heap[*source] {
	arrivals := heap[*source]{before: func(a, b *source) bool {
		return a.next < b.next || a.next == b.next && a.stream < b.stream
	}}
	for i := range load.Streams {
		if s := newSource(load, i, end); s.advance() {
			arrivals.push(s)
		}
	}
	return arrivals
}

// countArrivals returns how many calls of a load come before end if all are retried as
// often as they may be, no more than MaxRetries more than most, and when the last one
// comes that is no retry.
func countArrivals(load Load, end time.Duration, most int64) (count int64, last time.Duration) {
	for i, of := range load.Streams {
		for s := newSource(load, i, end); count <= most && s.advance(); count += int64(1 + of.Retries) {
			last = max(last, s.next)
		}
	}
	return count, last
}
