// Package core is the engine: it knows the resources of a service, holds the rules in
// force, and decides on every call.
//
// A call: [Engine.Entry] (entry.go) finds the resource and its plan. The plan has a chain,
// which is the rules that apply to the call (chain.go). A call that has to wait gets an
// admission (admission.go). A call that is refused gets a [BlockError] (refuse.go), any
// other a [Guard], whose Exit ends the call (guard.go).
//
// A rule: [Engine.Load] (load.go) takes rules from code, [Engine.Follow] (follow.go)
// documents from a [Source]. Package ruleset decides which rules are in force. A swap
// (swap.go) makes plans for the resources that a change affects, and puts all of them
// in force in one atomic step.
//
// docs/architecture.md has both at length. Engines are independent of one another; two
// in one process share nothing.
package core
