package lists

import (
	"math/rand/v2"
	"time"
)

// backoff is exponential backoff: each pause is random, from half of a limit to the
// limit, which doubles with each failure.
type backoff struct {
	min, max time.Duration
	limit    time.Duration // of the previous pause; 0 before the first
}

// next doubles the limit and returns how long to pause after a failure.
func (b *backoff) next() time.Duration {
	// The comparison is with half the maximum so that doubling cannot overflow.
	if b.limit > b.max/2 {
		b.limit = b.max
	} else {
		b.limit = max(b.min, 2*b.limit)
	}
	return b.limit - rand.N(b.limit/2+1) //nolint:gosec // spreads load, guards no secret
}

// reset makes the limit start at its minimum again.
func (b *backoff) reset() { b.limit = 0 }
