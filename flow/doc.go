// Package flow limits the rate of calls. It has the [Rule] that states a limit, and the
// limiters that enforce it:
//
//   - [Window] enforces rules with a sliding window, or with a fixed window that is
//     aligned to the calendar. The limit holds exactly, under any number of goroutines.
//   - [Queue] enforces rules that may let calls wait, first come, first served: a
//     throttle, which spaces calls evenly; a token bucket, which lets bursts pass; and a
//     token bucket that warms up, whose tokens take the longer the colder the resource.
//
// A rule is compiled into [Terms], which never change. When a rule changes, its limiter
// goes over to the new terms and keeps what it has counted, as long as [Rule.Limiter]
// stays the same.
//
// Time is a parameter: nothing here reads a clock or waits. Limiters are safe for
// concurrent use.
package flow
