// Package fleet shares a limit among all instances of a service.
//
// A [Member] is one instance. It decides on calls by itself, in one atomic step, from
// tokens that it has leased from a [Backend], such as a Redis server, ahead of its demand.
// No call waits for the network, unless a limit is asked for each call, see [ModeAsk].
//
// When the backend does not answer, a limit goes on as its [OnOutage] says.
package fleet
