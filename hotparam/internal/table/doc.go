// Package table keeps state per value (of an attribute: a user, an address) in fixed
// memory, however many values there are and whoever chooses them.
//
// A value is given as a 64-bit hash of it, made with a secret seed: whoever chooses
// values must not be able to choose their hashes. There are three tables:
//
//   - [Buckets]: a token bucket or a throttle per value, one 64-bit word each.
//   - [Windows]: a sliding window of ten buckets per value, 48 bytes each.
//   - [Concurrency]: the calls under way per value, one 64-bit word each.
//
// They make one promise: no value ever gets more than its limit allows, whatever other
// values do. A slot is given to another value only when its state is as new, so that
// nothing is lost, and of those that come at least once in a window not even then: who keeps
// to a limit does not lose a slot to many others ([Concurrency] has no such grace). Values that find no slot are judged by a sketch, which only
// over-estimates what a value has used. They may be refused for what others used; a value
// that later gets a slot starts from the sketch's estimate.
//
// Two values share a slot if their hashes agree in the two groups of slots that they may
// use and in the tag, which at a full table is less than one in 10,000. They then share
// one limit.
//
// All methods are safe for concurrent use. Calls on values that have a slot take no lock
// ([Windows]: that of a shard). Nothing allocates after making, and there are no
// goroutines: memory is swept by the calls that touch it.
package table
