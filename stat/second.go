package stat

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Second is what happened on a resource in one calendar second. Counts are of
// calls.
type Second struct {
	Start           clock.Instant // when the second began
	Passed          uint64        // let through
	Blocked         uint64        // refused
	Completed       uint64        // ended, failed ones included
	Failed          uint64        // ended with a failure
	Waited          uint64        // ended a wait, however it ended
	ResponseTime    time.Duration // of all that ended, together
	MaxResponseTime time.Duration // the longest of them
	MaxInFlight     uint64        // the most that were under way at once, as seen when calls passed
}

// MeanResponseTime returns the mean response time of the calls that ended.
func (s Second) MeanResponseTime() time.Duration {
	if s.Completed == 0 {
		return 0
	}
	return s.ResponseTime / time.Duration(s.Completed)
}

// Totals is what happened on a resource since the engine first saw it. Counts
// are of calls, unless they say otherwise. They never go down, but for a call that
// is taken back, as if it had never come.
type Totals struct {
	InFlight int64 // under way now
	Waiting  int64 // waiting for their turn now

	Passed    uint64 // let through
	Blocked   uint64 // refused
	Completed uint64 // ended, failed ones included
	Failed    uint64 // ended with a failure
	Waited    uint64 // ended a wait, however it ended

	// Tokens that calls asked for when they entered. What a call corrects later is not
	// part of it.
	PassedTokens  uint64 // of the calls that were let through
	BlockedTokens uint64 // of the calls that were refused

	// These sums wrap around after 292 years; differences between two readings
	// stay right.
	WaitTime      time.Duration // of all waits that ended, together
	ResponseTime  time.Duration // of all calls that ended, together
	ResponseTimes Distribution  // time waiting in Penstock is not part of it
}
