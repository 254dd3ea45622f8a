// Package sharing is an instance of a fleet, with all limits that it shares with others.
//
// A [Member] is one instance. It decides on calls by itself, in one atomic step, from tokens that it has
// leased from a [fleet.Backend] ahead of its demand. No call waits for the network, unless a limit is asked
// for each call, see [fleet.ModeAsk].
//
// Each way of sharing has a package: lease, ask, share, leasedplaces and valueplaces. A type of it is one limit,
// and another one all those of the instance, of which the member knows what to look at, and when. They know the
// exchange with the backend, but neither the member nor each other. Below them are what an instance measures (usage)
// and what decides while the backend does not answer (outage). Another way of sharing is another package of
// this form, named in limits.go.
package sharing
