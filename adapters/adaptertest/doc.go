// Package adaptertest is the conformance suite of adapters: what guards the requests of a
// web framework ([HTTP]), the calls of an RPC framework ([RPC]), or the calls that a client
// makes ([Calls]).
//
// The test of an adapter describes its framework with a harness: how to start a server with
// some guards and routes, and how options and handlers of the suite become those of the
// framework. The suite drives it with real clients over loopback, and checks what rules get
// to know of each call, what clients are answered, and that nothing is left: no call under
// way, no goroutine. See CONTRIBUTING.md for the steps, and internal/nethttp for a
// harness.
//
// What a framework cannot do is in the Lacks of its harness, with the reason. Tests that
// need it are skipped and print the reason.
//
// It is a module of its own, so that a service that uses adapters needs no test tools. For the
// same reason the tests of adapters/nethttp, rpc and sql are here, in internal.
//
// The package also has what the other tests of adapters need: [Probe], a rule that records
// calls; [NewEngine] and [RequireEnded]; [CheckAllocs].
package adaptertest
