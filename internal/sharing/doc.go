// package sharing is an instance of a fleet: what it leases, asks for, divides and claims of the limits
// that all instances share.
//
// A [Member] is one instance. It decides on calls by itself, in one atomic step, from tokens that it has
// leased from a [fleet.Backend] ahead of its demand. No call waits for the network, unless a limit is asked
// for each call, see [fleet.ModeAsk].
package sharing
