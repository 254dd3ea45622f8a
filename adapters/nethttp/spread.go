package nethttp

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Spread has the clients that are refused together come back one after the other: Retry-After asks
// each of them to wait for a random time more than it has to. The parameter t of the RateLimit
// fields tells when more may pass, and is the same for all; so Retry-After is never before its end.
type Spread struct {
	// Share is the most that is added, as a share of the wait, rounded up to whole seconds.
	// Defaults to 0.2. A negative one adds nothing.
	Share float64

	// Most is the most that is added, however long the wait is. Defaults to
	// ten minutes.
	Most time.Duration

	// Random returns random numbers from 0 up to 1. It must be safe for concurrent use. Defaults
	// to [rand.Float64].
	Random func() float64
}

// The defaults of [Spread].
const (
	defaultSpread     = 0.2
	defaultMostSpread = 10 * time.Minute
)

// spreadValues is how many different waits an answer has at most. They are at equal distances.
const spreadValues = 32

func (s Spread) withDefaults() Spread {
	if s.Share == 0 {
		s.Share = defaultSpread
	}
	if s.Most == 0 {
		s.Most = defaultMostSpread
	}
	if s.Random == nil {
		s.Random = rand.Float64
	}
	return s
}

// Wait returns how long one of the clients is to wait, of those that have to wait for after: up to
// Share more, at random. For adapters whose answers tell waits that are no whole seconds.
func (s Spread) Wait(after time.Duration) time.Duration {
	s = s.withDefaults()
	if s.Share < 0 || after <= 0 {
		return after
	}
	more := min(s.Share*float64(after), float64(max(0, s.Most)), float64(math.MaxInt64-after)/2)
	return after + time.Duration(min(max(0, s.Random()), 1)*more)
}

// valuesOf returns the values of Retry-After for a refusal, in order; nil if it is not known when
// such a call passes.
func (s *Spread) valuesOf(block *core.BlockError) []string {
	after, known := retryAfter(block)
	if !known {
		return nil
	}
	seconds, more := wholeSeconds(after), int64(0)
	if s.Share > 0 {
		more = int64(min(math.Ceil(s.Share*float64(seconds)), float64(wholeSeconds(max(0, s.Most)))))
	}
	values := make([]string, min(more+1, spreadValues))
	for i := range values {
		added := int64(0)
		if i > 0 {
			added = int64(i) * more / int64(len(values)-1)
		}
		values[i] = strconv.FormatInt(seconds+added, 10)
	}
	return values
}

// pick returns one of the values, nil if there is none.
func (s *Spread) pick(values []string) []string {
	if len(values) < 2 {
		return values
	}
	i := min(max(0, int(min(s.Random(), 1)*float64(len(values)))), len(values)-1)
	return values[i : i+1 : i+1]
}
