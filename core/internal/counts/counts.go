// Package counts compares sums of what happened on resources.
package counts

import (
	"time"

	"github.com/penstock-go/penstock/stat"
)

// Counts are the sums that a resource has: events, tokens and, in nanoseconds, times.
type Counts [kinds]uint64

// The places of the counts.
const (
	Passed = iota
	Blocked
	Completed
	Failed
	Waited
	PassedTokens
	BlockedTokens
	WaitTime
	ResponseTime
	kinds
)

// Of returns the counts of totals.
func Of(t *stat.Totals) Counts {
	return Counts{
		t.Passed, t.Blocked, t.Completed, t.Failed, t.Waited,
		t.PassedTokens, t.BlockedTokens, uint64(t.WaitTime), uint64(t.ResponseTime),
	}
}

// OfSecond returns those that a second has: it has no tokens.
func OfSecond(s *stat.Second) Counts {
	return Counts{
		Passed: s.Passed, Blocked: s.Blocked, Completed: s.Completed, Failed: s.Failed,
		Waited: s.Waited, ResponseTime: uint64(s.ResponseTime),
	}
}

// SetSecond sets the counts of a second.
func (c Counts) SetSecond(s *stat.Second) {
	s.Passed, s.Blocked, s.Completed, s.Failed = c[Passed], c[Blocked], c[Completed], c[Failed]
	s.Waited, s.ResponseTime = c[Waited], time.Duration(c[ResponseTime])
}

// AddTo adds the counts to totals.
func (c Counts) AddTo(t *stat.Totals) {
	t.Passed += c[Passed]
	t.Blocked += c[Blocked]
	t.Completed += c[Completed]
	t.Failed += c[Failed]
	t.Waited += c[Waited]
	t.PassedTokens += c[PassedTokens]
	t.BlockedTokens += c[BlockedTokens]
	t.WaitTime += time.Duration(c[WaitTime])
	t.ResponseTime += time.Duration(c[ResponseTime])
}

// Add adds more.
func (c *Counts) Add(more Counts) {
	for i := range c {
		c[i] += more[i]
	}
}

// Raise raises the counts to what they are now, and returns by how much. One that is lower now
// stays: what was read of a call that was taken back makes up for the next one. Sums of times may
// wrap around.
func (c *Counts) Raise(now Counts) (more Counts) {
	for i := range c {
		if rise := now[i] - c[i]; int64(rise) > 0 {
			more[i] = rise
			c[i] = now[i]
		}
	}
	return more
}
