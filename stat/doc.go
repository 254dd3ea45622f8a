// Package stat counts what passes a resource, without locks and without
// allocating.
//
//   - [LeapArray] counts events by the second and remembers the last minute.
//   - [Window] is the leap array that limits are held against: checking for
//     room and taking it is one atomic step.
//   - [Histogram] keeps the distribution of response times.
//   - [Node] is all that is known of one resource.
//
// Time is a parameter everywhere; nothing here reads a clock.
package stat
