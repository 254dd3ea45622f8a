package flow

import "github.com/penstock-go/penstock/rule"

// Decision is what a limiter says to a call.
type Decision = rule.Decision

const (
	// Passed tells that the tokens are taken.
	Passed = rule.Pass
	// Refused tells that the call exceeds the ceiling. Nothing was taken.
	Refused = rule.Block
	// Queued tells that the call must wait for its turn.
	Queued = rule.Wait
	// Outdated tells that the limiter works by newer terms than the call
	// brought, or has seen a later instant. Nothing was taken; ask again with
	// fresh ones.
	Outdated = rule.Stale
)
