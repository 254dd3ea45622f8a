// Package peer gives Penstock and libraries that do similar work the same small
// interface, so that all of them are measured by the same code.
package peer

import "github.com/penstock-go/penstock/clock"

// Huge is a limit that no load reaches and that every library still enforces.
const Huge = 1_000_000_000

// resource is the name of the resource in libraries that have names.
const resource = "bench:orders:create"

// Try makes one call: it asks whether the call may pass and, if the library needs it,
// reports its end. It returns false when the call was refused. Calls are numbered, for
// tries that use many resources in turn. A Try is safe for concurrent use.
type Try func(call int) bool

// Limiter is a rate limiter of a library.
type Limiter struct {
	Name string // as in the tables

	// New returns a new limiter with a limit in calls per second. That of Sentinel
	// replaces the one before; see [Reset].
	New func(limit int) (Try, error)
}

// Settings are for the libraries that can be configured.
type Settings struct {
	// Clock is the clock to use. Defaults to each library's own.
	Clock clock.Clock

	// MaxResources bounds how many resources have statistics of their own.
	// Defaults to each library's own bound.
	MaxResources int
}

// Limiters returns the limiters that refuse calls over the limit, and some that make
// them wait instead.
func Limiters(settings Settings) []Limiter {
	return append(penstockLimiters(settings), append([]Limiter{sentinelLimiter(settings)}, otherLimiters()...)...)
}

// Queues returns the limiters that make calls wait and release them evenly spaced.
func Queues(settings Settings) []Limiter {
	return append([]Limiter{penstockQueue(settings), sentinelQueue(settings)}, otherQueues()...)
}
