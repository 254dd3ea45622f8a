package retry

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"

	"github.com/penstock-go/penstock/clock"
)

// Backoff tells how long to pause after a failure: exponential backoff with jitter. Each pause is
// random, from half of a limit to the limit, so that the instances of a service do not try again
// all at once. The limit starts at Min and doubles with each failure up to Max.
//
// Min and Max are not negative, and Min is not above Max. A Backoff is not safe for concurrent
// use.
type Backoff struct {
	Min, Max time.Duration

	limit time.Duration // of the previous pause; 0 before the first
}

// Next returns how long to pause after one more failure.
func (b *Backoff) Next() time.Duration {
	// The comparison is with half the maximum so that doubling cannot overflow.
	if b.limit > b.Max/2 {
		b.limit = b.Max
	} else {
		b.limit = max(b.Min, 2*b.limit)
	}
	return b.limit - rand.N(b.limit/2+1) //nolint:gosec // spreads load, guards no secret
}

// Reset makes the limit start at Min again.
func (b *Backoff) Reset() { b.limit = 0 }

// Sleep waits for d by the clock. It returns false at once when ctx ends first.
func Sleep(ctx context.Context, c clock.Clock, d time.Duration) bool {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// Alike says whether two errors have the same text but for digits: the ports, revisions and
// durations in it change with each attempt, and a log of new errors is not to repeat for each of
// them. No error is like nil.
func Alike(a, b error) bool {
	return a != nil && b != nil && withoutDigits(a) == withoutDigits(b)
}

func withoutDigits(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
}
