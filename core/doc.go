// Package core is the engine: it keeps the resources of a service, puts rules in force,
// and decides on every call.
//
// The way of a call: [Engine.Entry] finds the resource and its plan (entry.go), the
// rules of the plan decide (chain.go), a call that has to wait gets an admission
// (admission.go), and [Guard.Exit] ends the call (guard.go). The way of a rule: a
// [Source] delivers documents (follow.go), or the code calls [Engine.Load] (load.go);
// internal/ruleset decides which rules are in force; a swap compiles plans for the
// resources that these change and puts all of them in force in one atomic step
// (swap.go).
//
// Engines are independent of one another; two in one process share nothing.
package core
