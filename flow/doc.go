// Package flow holds the rate ceilings: the [Rule] that states one, and the
// limiters that enforce it.
//
//   - [Window] enforces control [Reject]: a sliding window whose ceiling holds
//     exactly, whatever the number of goroutines.
//   - [Queue] enforces control [Throttle]: turns that are evenly spaced, first
//     come, first served.
//
// A rule is compiled into [Terms], which never change; what a limiter has
// counted outlives them, so that a changed rule goes on where the old one was.
// Time is a parameter: nothing here reads a clock or waits.
package flow
