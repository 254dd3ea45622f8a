package clock

import (
	"context"
	"sync/atomic"
	"time"
)

// coarse is the system clock, read at intervals.
type coarse struct {
	Clock
	now atomic.Int64 // the instant read last; 0 once its context has ended
}

// NewCoarse returns the system clock, read at intervals, of one millisecond if the interval is not positive, so that
// Now costs one load instead of 9 ns, or 24 on machines whose time-stamp counter [System] cannot read. Limits
// hold on its time, as on that of any clock. Waits and response times are right within an interval.
// Buckets begin late by up to an interval, or later when the machine is too busy to run the
// goroutine that reads the clock.
//
// The goroutine runs until ctx ends. Afterwards the clock still works and is exact.
func NewCoarse(ctx context.Context, interval time.Duration) Clock {
	if interval <= 0 {
		interval = time.Millisecond
	}
	c := &coarse{Clock: System()}
	c.now.Store(int64(c.Clock.Now()))
	go c.run(ctx, interval)
	return c
}

func (c *coarse) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.now.Store(int64(c.Clock.Now()))
		case <-ctx.Done():
			c.now.Store(0)
			return
		}
	}
}

// Now returns the instant that the goroutine has read last.
func (c *coarse) Now() Instant {
	if now := c.now.Load(); now != 0 {
		return Instant(now)
	}
	return c.Clock.Now()
}
