package serve

import (
	"math"
	"time"
)

// The token bucket of an assignment.
const (
	// noLimitTTL is how long the assignment of a bucket without a limit lasts.
	noLimitTTL = time.Minute

	// burstTime is for how long a data plane may use its rate at once, and minBurst the least
	// number of requests. A larger burst is more that passes beyond the limit whenever an older
	// Envoy gets another assignment, for which it makes a new, full bucket.
	burstTime = 40 * time.Millisecond
	minBurst  = 10

	// precision is the least tokens_per_fill, where a fill interval of maxFill allows that.
	precision = 200
	maxFill   = 1_000_000 // seconds
)

// assignment is what a data plane may let pass: all, nothing, or what a token bucket holds.
type assignment struct {
	rate      float64 // requests per second, as the fields below say; infinite for all
	maxTokens uint32
	tokens    uint32 // that are filled in, per interval
	interval  int64  // in seconds: Envoy cuts off fractions
}

// assignmentOf returns the assignment of a rate in place of another one. burst bounds the
// bucket, but for what the rate fills within full.
func assignmentOf(rate, burst float64, full time.Duration, before assignment) assignment {
	if rate <= 0 {
		return assignment{}
	}
	if math.IsInf(rate, 1) {
		return assignment{rate: rate}
	}
	interval := int64(1)
	for rate*float64(interval) < precision && interval < maxFill {
		interval *= 10
	}
	a := assignment{
		maxTokens: tokensOf(max(rate*full.Seconds(), min(minBurst, burst))),
		tokens:    tokensOf(rate * float64(interval)),
		interval:  interval,
	}
	// Envoy takes two token buckets for equal that differ only in the seconds of the interval.
	if a.tokens == before.tokens && a.interval != before.interval {
		a.tokens++
	}
	a.rate = float64(a.tokens) / float64(a.interval)
	return a
}

// tokensOf returns a number of tokens as a message can have it, at least one.
func tokensOf(n float64) uint32 { return uint32(min(max(math.Round(n), 1), math.MaxUint32-1)) }
