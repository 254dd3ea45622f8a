package rule

import (
	"strings"

	"github.com/penstock-go/penstock/fleet"
)

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

// FleetFields returns the fields scope, fleet.mode and fleet.onOutage, of kinds whose limits
// can be for all instances of a service. They stand next to each other in a list.
func FleetFields[R any](scope func(*R) *Scope, at func(*R) *Fleet) []Field[R] {
	return []Field[R]{
		ChoiceField("scope", scope, ScopeInstance, ScopeFleet).Accepts(string(ScopeInstance), "").
			Says("instance: a limit for each instance of the service; fleet: one for all of them together").
			Otherwise(string(ScopeInstance)),
		ChoiceField("fleet.mode", func(r *R) *fleet.Mode { return &at(r).Mode },
			fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare).Given("scope", "algorithm").
			Says("how instances share the limit: lease, window, ask or share"),
		ChoiceField("fleet.onOutage", func(r *R) *fleet.OnOutage { return &at(r).OnOutage },
			fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed).Given("scope").
			Says("what the limit does while the backend is away: last, share, open or closed"),
	}
}

// SetFleetDefaults fills in how the limit of a rule is shared, and makes [ScopeInstance] the
// zero value, so that rules that say the same are equal.
func SetFleetDefaults(scope *Scope, f *Fleet, mode fleet.Mode) {
	switch *scope {
	case ScopeInstance:
		*scope = ""
	case ScopeFleet:
		SetDefault(&f.Mode, mode)
		SetDefault(&f.OnOutage, fleet.OutageLast)
	}
}

// ValidateFleet judges the scope of a complete rule and how it is shared. It says whether the
// rule is for the whole fleet by a mode that is known, so that it makes sense to ask what
// goes with that.
func (f *Faults) ValidateFleet(scope Scope, of Fleet) (sound bool) {
	switch scope {
	case ScopeFleet:
	case "", ScopeInstance:
		f.noFleet("fleet.mode", string(of.Mode))
		f.noFleet("fleet.onOutage", string(of.OnOutage))
		return false
	default:
		f.Add("scope", "is %q: must be %q or %q", scope, ScopeInstance, ScopeFleet)
		return false
	}
	switch of.OnOutage {
	case fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed:
	default:
		f.Add("fleet.onOutage", "is %q: must be %q, %q, %q or %q", of.OnOutage,
			fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed)
	}
	switch of.Mode {
	case fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare:
		return true
	}
	f.Add("fleet.mode", "is %q: must be %q, %q, %q or %q", of.Mode,
		fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare)
	return false
}

// noFleet judges a field that only limits of the fleet have.
func (f *Faults) noFleet(field, value string) {
	if value != "" {
		f.Add(field, "has no effect without scope %q: remove it, or add scope: %s", ScopeFleet, ScopeFleet)
	}
}

// InsteadOfAsking says what to change so that no call waits for an answer of the fleet, of a rule whose
// limit can be shared by another mode, "" if by none; it is "" if no call does.
func (f Fleet) InsteadOfAsking(other fleet.Mode) string {
	switch {
	case f.Mode != fleet.ModeAsk:
		return ""
	case other == "":
		return "remove scope"
	}
	return "set fleet.mode to " + string(other)
}

// FleetKey returns the key of the limit of a rule in the fleet: kind/rule, or
// kind/rule/resource if each resource has a limit of its own. No two limits have the same.
func (e *Env) FleetKey(of Key, perResource bool) string {
	key := string(of.Kind) + "/" + keyEscaper().Replace(of.Name)
	if perResource && e.Resource != "" {
		key += "/" + e.Resource
	}
	return key
}

// keyEscaper makes a name one part of a key.
func keyEscaper() *strings.Replacer { return strings.NewReplacer("%", "%25", "/", "%2F") }
