// Package simulate shows what rules do to a load before the load comes.
//
// [Run] sends the calls of a [Load] through an engine, the same that production
// runs, on a virtual clock: an hour takes a moment, nothing sleeps, and the same
// load under the same rules always gives the same [Result]. That makes it fit for
// unit tests of your own rules; see the example.
//
// A call that passes ends after the service time of its stream, or when a
// [Server] has served it, and then succeeds or fails as its stream says. A call
// that takes longer than its timeout fails at that instant.
//
// Several instances of the service may share the load, see [Options.Instances]. Each has an
// engine with all the rules. Rules whose limit is that of the fleet share it through a
// backend that is simulated, too: with the latency, the losses and the outages of a [Fleet].
//
// Virtual time starts at 0, on the boundary of a second, with every window empty
// and every resource without history. Events of the same instant are processed in
// this order: rules read signals; calls end; timeouts run out; balances are recharged; the backend of a fleet gets
// requests, and instances its replies; waits end, first those of calls that got the place of
// a call that ended, then those whose time has come or whose longest wait is over; calls are
// tried again; calls arrive, in the order of their streams. So a call that waits for another one to end goes on at that instant, by what
// the rules have learned from all calls that ended then. A second begins before all calls
// of its first instant.
package simulate
