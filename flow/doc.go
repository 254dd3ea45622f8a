// Package flow limits the rate of calls. It has the [Rule] that states a limit, and the
// limiters that enforce it:
//
//   - [Window] enforces rules with a sliding window, or with a fixed window that is
//     aligned to the calendar. The limit holds exactly, under any number of goroutines.
//   - [Queue] enforces rules that may let calls wait, by priority and then first come,
//     first served: a throttle, which spaces calls evenly; a token bucket, which lets
//     bursts pass; and a token bucket that warms up, which makes tokens slower for a cold
//     resource.
//
// Most programs only need the Rule, and give it to an engine. A program without an
// engine can use a Window or a Queue by itself: [Compile] a rule, make the limiter, and
// pass the compiled rule with each call. A rule that has changed is compiled again,
// with a higher version. The same limiter then goes over to it and keeps what it has
// counted, as long as the algorithm stays the same.
//
// [RuleLimiter] and [RuleQueue] are what the engine asks.
//
// Time is a parameter: nothing here reads a clock or waits. Limiters are safe for
// concurrent use.
package flow
