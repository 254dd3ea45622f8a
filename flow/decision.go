package flow

// Decision is what a limiter says to a call.
type Decision uint8

const (
	// Passed: the tokens are taken.
	Passed Decision = iota
	// Refused: the call exceeds the ceiling. Nothing was taken.
	Refused
	// Queued: the call must wait for its turn.
	Queued
	// Outdated: the limiter works by newer terms than the call brought, or has
	// seen a later instant. Nothing was taken; ask again with fresh ones.
	Outdated
)
