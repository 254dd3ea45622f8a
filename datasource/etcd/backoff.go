package etcd

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff draws the pauses between attempts: from zero to a limit that doubles
// with each failure.
type backoff struct {
	min, max time.Duration
	limit    time.Duration // of the pause drawn last; 0 at first
}

// next returns how long to pause after another failure.
func (b *backoff) next() time.Duration {
	// The comparison is with half the maximum so that doubling cannot overflow.
	if b.limit > b.max/2 {
		b.limit = b.max
	} else {
		b.limit = max(b.min, 2*b.limit)
	}
	return rand.N(b.limit + 1) //nolint:gosec // spreads load, guards no secret
}

// reset makes the next pause a short one.
func (b *backoff) reset() { b.limit = 0 }

// wait pauses for d and returns whether ctx still lasts.
func (s *Source) wait(ctx context.Context, d time.Duration) bool {
	timer := s.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
