// Package peer puts Penstock and the libraries that do similar work behind the
// same few names, so that all of them are measured by the same code.
package peer

import "github.com/penstock-go/penstock/clock"

// Huge is a limit that no load of a test reaches, and which every library still
// takes for a limit.
const Huge = 1_000_000_000

// resource is the name that limiters are asked for, where they have names.
const resource = "bench:orders:create"

// Try makes one call: it asks whether the call may be made and, where a library
// wants to know, says that it has ended. It returns false when the call was
// refused. Calls are numbered, for tries that go round many resources. A Try is
// safe for concurrent use.
type Try func(call int) bool

// Limiter is something of a library that lets so many calls through in a second.
type Limiter struct {
	Name string // as in the tables

	// New returns a fresh limiter of so many calls per second. That of Sentinel
	// takes the place of the one before; see [Reset].
	New func(limit int) (Try, error)
}

// Settings are what those take that can be told.
type Settings struct {
	// Clock is the time to go by. Defaults to each library's own.
	Clock clock.Clock

	// MaxResources bounds how many resources have statistics of their own.
	// Defaults to each library's own bound.
	MaxResources int
}

// Limiters returns one of each kind that refuses what exceeds its limit, and
// some that wait instead.
func Limiters(settings Settings) []Limiter {
	return append(penstockLimiters(settings), append([]Limiter{sentinelLimiter(settings)}, otherLimiters()...)...)
}

// Queues returns the limiters that make calls wait until it is their turn, evenly
// spaced.
func Queues(settings Settings) []Limiter {
	return append([]Limiter{penstockQueue(settings), sentinelQueue(settings)}, otherQueues()...)
}
