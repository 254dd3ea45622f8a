package main

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// stall is a delay from which on the machine counts as busy with other things.
const stall = 50 * time.Millisecond

// stalls notes in which seconds things happened late that had no reason to wait: the load is
// not what it says then. The zero value is not ready to use.
type stalls struct {
	clock clock.Clock

	mu      sync.Mutex
	seconds map[int64]bool // since 1970
}

func newStalls(c clock.Clock) *stalls { return &stalls{clock: c, seconds: make(map[int64]bool)} }

// note notes something that happens now, and was late by so much.
func (s *stalls) note(late time.Duration) {
	if late < stall {
		return
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for second := int64(now.Add(-late)) / 1e9; second <= int64(now)/1e9; second++ {
		s.seconds[second] = true
	}
}

// watch notes when timers fire late, until ctx ends.
func (s *stalls) watch(ctx context.Context) {
	const every = 5 * time.Millisecond
	timer := s.clock.NewTimer(every)
	defer timer.Stop()
	for due := s.clock.Now().Add(every); ; {
		select {
		case <-timer.C():
		case <-ctx.Done():
			return
		}
		now := s.clock.Now()
		s.note(now.Sub(due))
		due = now.Add(every)
		timer.Reset(every)
	}
}

// in says whether something was late in the second from start on, or in the one before, whose
// calls count on.
func (s *stalls) in(start clock.Instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	second := int64(start) / 1e9
	return s.seconds[second] || s.seconds[second-1]
}
