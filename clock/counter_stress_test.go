package clock

import (
	"sync"
	"testing"
	"time"
)

func TestCounterClockIsThatOfTheSystemForEveryGoroutine(t *testing.T) {
	t.Parallel()
	skipWithoutCounter(t)
	const (
		goroutines = 8
		readings   = 300_000
		inexact    = 50 * time.Microsecond
	)
	s := newSystem()
	c := newCounterClock(s)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			last := Instant(0)
			for range readings {
				before := s.Now()
				now := c.Now()
				after := s.Now()
				if now < last || now < before.Add(-inexact) || now > after.Add(inexact) {
					t.Errorf("%d is not from %d to %d, and after %d", now, before, after, last)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
}
