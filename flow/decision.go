package flow

// Decision is what a limiter says to a call.
type Decision uint8

const (
	// Passed tells that the tokens are taken.
	Passed Decision = iota
	// Refused tells that the call exceeds the ceiling. Nothing was taken.
	Refused
	// Queued tells that the call must wait for its turn.
	Queued
	// Outdated tells that the limiter works by newer terms than the call
	// brought, or has seen a later instant. Nothing was taken; ask again with
	// fresh ones.
	Outdated
)
