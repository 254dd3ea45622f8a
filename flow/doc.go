// Package flow limits the rate of calls. It has the [Rule] that states a limit, which an engine enforces
// for its resources, and the [Limiter] that enforces one without an engine.
//
// Within, a window enforces rules with a sliding window, or with a fixed window that is aligned to the
// calendar: the limit holds exactly, under any number of goroutines. A queue enforces rules that may let
// calls wait, by priority and then first come, first served: a throttle, which spaces calls evenly; a
// token bucket, which lets bursts pass; and a token bucket that warms up, which makes tokens slower for a
// cold resource. Both are what a ruleLimiter asks, which the engine knows. A rule that has changed is
// compiled again, with a higher version. The same limiter then goes over to it and keeps what it has
// counted, as long as the algorithm stays the same.
//
// Time is a parameter, but for a Limiter, which has a clock: all else reads no clock and never waits.
// Limiters are safe for concurrent use.
package flow
