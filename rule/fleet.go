package rule

import "github.com/penstock-go/penstock/fleet"

// Scope says for which calls together a limit is. The zero value is [ScopeInstance].
type Scope string

// The scopes.
const (
	// ScopeInstance is a limit for each instance of the service.
	ScopeInstance Scope = "instance"

	// ScopeFleet is one limit for all instances of the service together.
	ScopeFleet Scope = "fleet"
)

// Fleet says how all instances of a service share a limit of [ScopeFleet].
type Fleet struct {
	// Mode is how they share it. Defaults to [fleet.ModeLease], of a rule that counts by
	// windows of the calendar to [fleet.ModeWindow].
	Mode fleet.Mode

	// OnOutage is what the limit does while the backend of the fleet does not answer.
	// Defaults to [fleet.OutageLast].
	OnOutage fleet.OnOutage
}
