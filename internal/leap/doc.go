// Package leap counts calls in leap arrays. It does not allocate, and it takes no locks except for the
// first call of a bucket or of a second.
//
//   - [Window] is the leap array that enforces a limit: checking how many tokens remain and taking them
//     is one atomic step.
//   - [Node] is the statistics of one resource: a leap array of the last minute's seconds, totals, and
//     the distribution of response times.
//   - [Histogram] keeps the distribution of response times.
//
// Time is a parameter everywhere; nothing here reads a clock. What is read of it has the types of
// package stat.
package leap
