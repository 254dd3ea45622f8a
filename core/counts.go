package core

import (
	"time"

	"github.com/penstock-go/penstock/stat"
)

// counts are the sums that a resource has: events, tokens and, in nanoseconds, times.
type counts [countKinds]uint64

const (
	countPassed = iota
	countBlocked
	countCompleted
	countFailed
	countWaited
	countPassedTokens
	countBlockedTokens
	countWaitTime
	countResponseTime
	countKinds
)

func countsOf(t *stat.Totals) counts {
	return counts{
		t.Passed, t.Blocked, t.Completed, t.Failed, t.Waited,
		t.PassedTokens, t.BlockedTokens, uint64(t.WaitTime), uint64(t.ResponseTime),
	}
}

// countsOfSecond returns those that a second has: it has no tokens.
func countsOfSecond(s *stat.Second) counts {
	return counts{
		countPassed: s.Passed, countBlocked: s.Blocked, countCompleted: s.Completed, countFailed: s.Failed,
		countWaited: s.Waited, countResponseTime: uint64(s.ResponseTime),
	}
}

// setSecond sets the counts of a second.
func (c counts) setSecond(s *stat.Second) {
	s.Passed, s.Blocked, s.Completed, s.Failed = c[countPassed], c[countBlocked], c[countCompleted], c[countFailed]
	s.Waited, s.ResponseTime = c[countWaited], time.Duration(c[countResponseTime])
}

// addTo adds the counts to totals.
func (c counts) addTo(t *stat.Totals) {
	t.Passed += c[countPassed]
	t.Blocked += c[countBlocked]
	t.Completed += c[countCompleted]
	t.Failed += c[countFailed]
	t.Waited += c[countWaited]
	t.PassedTokens += c[countPassedTokens]
	t.BlockedTokens += c[countBlockedTokens]
	t.WaitTime += time.Duration(c[countWaitTime])
	t.ResponseTime += time.Duration(c[countResponseTime])
}

func (c *counts) add(more counts) {
	for i := range c {
		c[i] += more[i]
	}
}

// raise raises the counts to what they are now, and returns by how much. One that is lower now
// stays: what was read of a call that was taken back makes up for the next one. Sums of times may
// wrap around.
func (c *counts) raise(now counts) (more counts) {
	for i := range c {
		if rise := now[i] - c[i]; int64(rise) > 0 {
			more[i] = rise
			c[i] = now[i]
		}
	}
	return more
}
