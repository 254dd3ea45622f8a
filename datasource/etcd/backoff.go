package etcd

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is exponential backoff with full jitter: each pause between attempts
// is random, from zero to a limit that doubles with each failure.
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
	return rand.N(b.limit + 1) //nolint:gosec // spreads load, guards no secret
}

// reset makes the limit start at its minimum again.
func (b *backoff) reset() { b.limit = 0 }

// sleep waits for d. It returns false at once when ctx ends first.
func (s *Source) sleep(ctx context.Context, d time.Duration) bool {
	timer := s.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
