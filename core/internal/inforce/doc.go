// Package inforce is the rules in force: each Rule with what an operator has Forced on it, what it keeps for a
// resource (State), and the Plan of a resource, which a Planner makes of the rules that apply to it, as chains of
// package call. It has no resources, no clock and no goroutine: package core says what changes, and when.
package inforce
