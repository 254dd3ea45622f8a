// Package flow holds the rate ceilings: the [Rule] that states one, and the
// limiters that enforce it.
//
//   - [Window] enforces rules with a sliding window, whose ceiling holds exactly
//     whatever the number of goroutines, or with a fixed one, aligned to the
//     calendar.
//   - [Queue] enforces rules that may make calls wait, first come, first served:
//     a throttle, whose turns are evenly spaced; a token bucket, which lets a
//     burst through that was saved up; and one that warms up, whose tokens take
//     the longer the colder the resource is.
//
// A rule is compiled into [Terms], which never change; what a limiter has
// counted outlives them, so that a changed rule goes on where the old one was, as
// long as [Rule.Limiter] is the same.
// Time is a parameter: nothing here reads a clock or waits.
package flow
