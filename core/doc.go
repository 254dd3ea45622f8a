// Package core is the engine: it knows the resources of a service, holds the
// rules in force, and decides on every call.
//
// The way of a call is in entry.go, top to bottom: [Engine.Entry] finds the
// resource and its plan, the plan's rules decide, the statistics are told, and
// [Guard.Exit] closes the account. The way of a rule is in follow.go and
// load.go: a [Source] delivers documents, what is sound becomes the rule set,
// plans are compiled for the resources that it changes, and one atomic step
// puts all of them in force.
//
// Engines are independent of one another; two in one process share nothing.
package core
