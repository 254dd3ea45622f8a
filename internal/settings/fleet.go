// Package settings has fields that rules of several kinds have: their documents, defaults and mistakes.
package settings

import (
	"cmp"
	"strings"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

// FleetFields returns the fields scope, fleet.mode and fleet.onOutage, of kinds whose limits
// can be for all instances of a service. They stand next to each other in a list.
func FleetFields[R any](scope func(*R) *rule.Scope, at func(*R) *rule.Fleet) []rule.Field[R] {
	return []rule.Field[R]{
		rule.ChoiceField("scope", scope, rule.ScopeInstance, rule.ScopeFleet).Accepts(string(rule.ScopeInstance), "").
			Says("instance: a limit for each instance of the service; fleet: one for all of them together").
			Otherwise(string(rule.ScopeInstance)),
		rule.ChoiceField("fleet.mode", func(r *R) *fleet.Mode { return &at(r).Mode },
			fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare).Given("scope", "algorithm").
			Says("how instances share the limit: lease, window, ask or share"),
		rule.ChoiceField("fleet.onOutage", func(r *R) *fleet.OnOutage { return &at(r).OnOutage },
			fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed).Given("scope").
			Says("what the limit does while the backend is away: last, share, open or closed"),
	}
}

// SetFleetDefaults fills in how the limit of a rule is shared, and makes [rule.ScopeInstance] the
// zero value, so that rules that say the same are equal.
func SetFleetDefaults(scope *rule.Scope, f *rule.Fleet, mode fleet.Mode) {
	switch *scope {
	case rule.ScopeInstance:
		*scope = ""
	case rule.ScopeFleet:
		f.Mode = cmp.Or(f.Mode, mode)
		f.OnOutage = cmp.Or(f.OnOutage, fleet.OutageLast)
	}
}

// ValidateFleet judges the scope of a complete rule and how it is shared. It says whether the
// rule is for the whole fleet by a mode that is known, so that it makes sense to ask what
// goes with that.
func ValidateFleet(f *rule.Faults, scope rule.Scope, of rule.Fleet) (sound bool) {
	switch scope {
	case rule.ScopeFleet:
	case "", rule.ScopeInstance:
		noFleet(f, "fleet.mode", string(of.Mode))
		noFleet(f, "fleet.onOutage", string(of.OnOutage))
		return false
	default:
		f.Add("scope", "is %q: must be %q or %q", scope, rule.ScopeInstance, rule.ScopeFleet)
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
func noFleet(f *rule.Faults, field, value string) {
	if value != "" {
		f.Add(field, "has no effect without scope %q: remove it, or add scope: %s", rule.ScopeFleet, rule.ScopeFleet)
	}
}

// ValidateAsked judges a rule of the whole fleet whose instances can only ask for each call, since they
// lease nothing of its window.
func ValidateAsked(f *rule.Faults, of rule.Fleet, shadow bool) {
	if of.Mode != fleet.ModeAsk {
		f.Add("fleet.mode", "is %q: instances share such a limit by %q; remove fleet.mode, or set it to that", of.Mode, fleet.ModeAsk)
	}
	if shadow {
		f.Add("shadow", "is true, but a shadow rule does not wait for answers, and only the fleet knows what is left of such "+
			"a limit: set scope to %q meanwhile", rule.ScopeInstance)
	}
}

// ValidateAskedBalance is ValidateAsked for a balance, of which no instance has a part in an outage.
func ValidateAskedBalance(f *rule.Faults, of rule.Fleet, shadow bool) {
	ValidateAsked(f, of, shadow)
	if of.OnOutage == fleet.OutageLast || of.OnOutage == fleet.OutageShare {
		f.Add("fleet.onOutage", "is %q, but no instance has a part of a balance: remove it, or set it to %q or %q",
			of.OnOutage, fleet.OutageClosed, fleet.OutageOpen)
	}
}

// InsteadOfAsking says what to change so that no call waits for an answer of the fleet, of a rule whose
// limit can be shared by another mode, "" if by none; it is "" if no call does.
func InsteadOfAsking(f rule.Fleet, other fleet.Mode) string {
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
func FleetKey(e *rule.Env, of rule.Key, perResource bool) string {
	key := string(of.Kind) + "/" + keyEscaper().Replace(of.Name)
	if perResource && e.Resource != "" {
		key += "/" + e.Resource
	}
	return key
}

// keyEscaper makes a name one part of a key.
func keyEscaper() *strings.Replacer { return strings.NewReplacer("%", "%25", "/", "%2F") }
