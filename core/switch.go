package core

import (
	"errors"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/rule"
)

// The states of [Engine.Switch].
const (
	SwitchOff = "off" // rules let calls pass, and count those that they would have refused
	SwitchOn  = "on"  // rules act, whatever is off more broadly
)

// maxSwitches is how many scopes can be switched at a time.
const maxSwitches = 1000

// Switch switches rules off or on again, as an operator does with a rule that is wrong: [SwitchOff] has
// them let all calls pass, and count those that they would have refused, like shadow rules; [SwitchOn]
// has them act although a broader scope is off. "" releases the scope. The narrowest scope counts: that
// of a rule before that of a resource, then a kind, then the engine. A rule that its document makes a
// shadow stays one.
//
// Once Switch has returned, no call that comes later is refused by what is off, and calls that wait for
// it go on; an [Arrival] does so when it proceeds. What calls under way hold stays counted, and the
// rules go on counting while they are off. Only a rule whose limit is one for the whole fleet is not
// asked at all while it is off: it takes no tokens of the fleet, and counts nothing.
//
// The scope stays switched while rules change, come and go, until the time of the order is over, it is
// released or the engine ends. The error matches [ErrUnknown] if there is nothing of the scope, and says so if 1,000
// scopes are switched already; what is switched can be released even if it is not known any more.
func (e *Engine) Switch(scope Scope, state string, order ...Order) error {
	change, limiters, err := e.switchTo(scope, state, order)
	if err != nil {
		return err
	}
	if change != nil {
		defer e.reportForced(change)
	}
	limiters.finish(e.clock.Now())
	return nil
}

func (e *Engine) switchTo(scope Scope, state string, orders []Order) (*ForcedChange, limiterChanges, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return nil, limiterChanges{}, ErrClosed
	}
	scope, err := e.rules.withKind(scope)
	if err != nil {
		return nil, limiterChanges{}, err
	}
	before := e.rules.switches.Of(inforce.Scope(scope))
	if err := e.checkSwitch(scope, state, before); err != nil {
		return nil, limiterChanges{}, err
	}
	after, err := e.newForced(scope, state, orders)
	if err != nil || before == nil && state == "" {
		return nil, limiterChanges{}, err
	}
	change := e.forcedChange(before, after, true)
	limiters := e.swapSwitches(e.rules.switches.With(after), inforce.Scope(scope))
	e.keepForcedTime(after)
	e.noteForced(&change)
	return &change, limiters, nil
}

// checkSwitch returns why a scope cannot be switched that is before now.
func (e *Engine) checkSwitch(scope Scope, state string, before *inforce.Forced) error {
	switch {
	case state != "" && state != SwitchOff && state != SwitchOn:
		return fmt.Errorf("core: %s cannot be switched to %s: the states are %q and %q, and \"\" to release it",
			scope, rule.Quote(state), SwitchOff, SwitchOn)
	case scope.Resource != "" && (scope.Kind != "" || scope.Rule != ""):
		return errors.New("core: a scope is a rule, a kind, a resource, or all: Scope has fields of two")
	case before != nil: // it can be released although it is gone
		return nil
	case state != "" && e.rules.switches.Len() >= maxSwitches:
		return fmt.Errorf("core: too many scopes are switched: %d are, release some", maxSwitches)
	case scope.Kind != "":
		return e.checkKindScope(scope)
	case scope.Resource != "" && !e.resources.IsKnown(scope.Resource):
		return &unknownError{"core: the resource was not called, and no rule is for it: " + rule.Quote(lines.Cut(scope.Resource))}
	}
	return nil
}

// withKind returns the scope of a rule with its kind, if that is left out. The caller holds s.mu.
func (s *ruleStore) withKind(scope Scope) (Scope, error) {
	if scope.Rule == "" || scope.Kind != "" || scope.Resource != "" {
		return scope, nil
	}
	found := scope
	for _, kind := range s.book.Kinds() {
		with := Scope{Kind: kind.Kind(), Rule: scope.Rule}
		if s.inForce(rule.Key{Kind: with.Kind, Name: with.Rule}) == nil && s.switches.Of(inforce.Scope(with)) == nil {
			continue
		}
		if found.Kind != "" {
			return scope, fmt.Errorf("core: %s and %s are rules of one name: say which by the kind", found, with)
		}
		found = with
	}
	if found.Kind == "" {
		return scope, &unknownError{"core: no such rule is in force: " + rule.Quote(lines.Cut(scope.Rule))}
	}
	return found, nil
}

// checkKindScope returns an error if a kind, or its rule, is not known. The caller holds rules.mu.
func (e *Engine) checkKindScope(scope Scope) error {
	isKind := func(d rule.Definition) bool { return d.Kind() == scope.Kind }
	switch {
	case !slices.ContainsFunc(e.rules.book.Kinds(), isKind):
		return unknownKind(scope.Kind)
	case scope.Rule != "" && e.rules.inForce(rule.Key{Kind: scope.Kind, Name: scope.Rule}) == nil:
		return unknownRule(rule.Key{Kind: scope.Kind, Name: scope.Rule})
	}
	return nil
}

// endSwitches releases what is switched and whose time is over. The caller holds rules.mu.
func (e *Engine) endSwitches() (changes []ForcedChange, limiters limiterChanges) {
	next, scopes := e.rules.switches, []inforce.Scope(nil)
	for _, f := range e.rules.switches.All() {
		if _, over := f.IsOver(e.clock); over {
			changes, scopes = append(changes, e.endOf(f, true)), append(scopes, f.Scope)
			next = next.With(&inforce.Forced{Scope: f.Scope})
		}
	}
	if len(scopes) > 0 {
		limiters = e.swapSwitches(next, scopes...)
	}
	return changes, limiters
}

// swapSwitches puts what is switched in force for all resources of the scopes at once, as a swap of rules
// does, and has calls that wait look again whether they have to. The caller holds rules.mu.
func (e *Engine) swapSwitches(next *inforce.Switches, scopes ...inforce.Scope) limiterChanges {
	c := &ruleChange{version: e.generation.Load() + 1, now: e.clock.Now(), switches: next, switched: scopes}
	limiters := e.apply(c)
	e.rules.switches, e.rules.revision = next, c.version
	e.sleepers.WakeAll()
	return limiters
}

// switchList returns switches in order.
func switchList(t *inforce.Switches, c clock.Clock) []Forced {
	list := make([]Forced, 0, t.Len())
	for _, f := range t.All() {
		list = append(list, shown(f, c))
	}
	slices.SortFunc(list, func(a, b Forced) int { return a.compare(b.Scope) })
	return list
}
