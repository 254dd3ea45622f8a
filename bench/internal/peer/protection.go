package peer

import (
	"errors"
	"time"
)

// Protection is what a library has against too many calls at once or against calls
// that fail, or all that it has, on one call.
type Protection struct {
	Name string // as in the tables

	// Passing returns calls that nothing refuses. Refusing returns calls that are all
	// refused; it is nil where refusals are not measured. What they return for
	// Sentinel replaces what they returned before; see [Reset].
	Passing, Refusing func() (Try, error)
}

// manyPlaces is a concurrency limit that the calls of a benchmark never reach.
const manyPlaces = 1000

// The breakers are all set alike, as far as a library has the setting: they open when
// half of at least so many calls in ten seconds, counted in ten buckets, have failed.
const (
	failureRatio   = 0.5
	failureWindow  = 10 * time.Second
	failureBuckets = 10
	fewestCalls    = 20
	staysOpenFor   = time.Hour // longer than any benchmark lasts
)

// How calls end: errFailed opens a breaker, errRefused is for a limit that has no error
// of its own.
var (
	errFailed  = errors.New("failed")
	errRefused = errors.New("refused")
)

// Isolations returns the concurrency limits. Those that refuse have one place, which
// is taken.
func Isolations() []Protection {
	return append([]Protection{penstockIsolation(asUsual()), penstockIsolation(atItsFastest()), sentinelIsolation()}, otherIsolations()...)
}

// Breakers returns the circuit breakers. Those that let calls pass are closed, and no
// call fails; those that refuse are open.
func Breakers() []Protection {
	return append([]Protection{penstockBreaker(asUsual()), penstockBreaker(atItsFastest()), sentinelBreaker()}, otherBreakers()...)
}

// Compositions returns a rate limit, a concurrency limit and a circuit breaker that a
// call passes one after the other.
func Compositions() []Protection {
	return append([]Protection{penstockComposition(), sentinelComposition()}, otherCompositions()...)
}
