// Package stat counts what passes a resource, without allocating and, but for the
// first call of a bucket or of a second, without locks.
//
//   - [Window] is the leap array that enforces a limit: checking how many tokens
//     remain and taking them is one atomic step.
//   - [Histogram] keeps the distribution of response times.
//   - [Node] is all that is known of one resource: a leap array of the last
//     minute's seconds, sums, and the distribution.
//
// Time is a parameter everywhere; nothing here reads a clock.
package stat
