// Package memory is a [fleet.Store] in the process, for tests, simulations and examples.
//
// Several members of a fleet may share one store, as they would share a Redis server. The
// store runs on a clock, which may be virtual, and answers at once: how long answers take
// and which are lost is up to the caller. It can lose its state ([Store.Flush]) and its
// clock can jump ([Store.Shift]).
//
// It says what every store does with a request, in plain Go: package redis does exactly the
// same.
package memory
