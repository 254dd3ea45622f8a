// Package simulate shows what rules do to a load, before the load comes.
//
// [Run] sends the calls of a [Load] through an engine, the very one that
// production runs, on a virtual clock: an hour passes in a moment, nothing
// sleeps, and the same load under the same rules gives the same [Result] every
// time. That makes it fit for unit tests of one's own rules, see the example.
//
// Virtual time starts at 0, on the boundary of a second, with everything cold
// and every window empty. What falls on the same instant happens in this order:
// calls end (their service time after they passed), turns of waiting calls fall
// due, calls arrive in the order of their streams. A second begins before all
// that happens at its first instant.
package simulate
