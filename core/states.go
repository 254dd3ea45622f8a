package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/rule"
)

// Control forces the state of the rule of a scope, on all resources that it guards, or of all rules of
// a kind, those that come later too, until it is released with "": as when an operator opens a circuit
// breaker by hand, or switches off all faults that rules inject. A state that is forced on a single rule
// goes before that of its kind. It stays forced while the rule keeps its name and what it guards, or
// until the time of the order is over. The error says that there is no such rule in force or no such
// kind, see [ErrUnknown], or that rules of the kind cannot be forced so.
func (e *Engine) Control(scope Scope, state string, order ...Order) error {
	change, rules, err := e.force(scope, state, order)
	return e.forced(&change, rules, err)
}

// forced brings limiters to a state that was forced, and reports it; err says that it was not.
func (e *Engine) forced(change *ForcedChange, rules []forcedRule, err error) error {
	if err != nil {
		return err
	}
	defer e.reportForced(change) // after the changes of state that it has led to
	e.applyForced(rules)
	return nil
}

// forcedRule is a rule whose forced state has changed, with the limiters that exist. Those
// that are made from now on begin with it, see also [registry.getOrAdd].
type forcedRule struct {
	rule     *inforce.Rule
	limiters []rule.Controllable
}

// applyForced brings limiters to the states that are forced on them. It is called without
// a lock: the observer may ask the engine.
func (e *Engine) applyForced(rules []forcedRule) {
	for _, forced := range rules {
		forced.rule.ApplyForced(forced.limiters, e.clock.Now)
	}
}

// force notes the state that is forced on a rule, or on all rules of a kind.
func (e *Engine) force(scope Scope, state string, orders []Order) (ForcedChange, []forcedRule, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return ForcedChange{}, nil, ErrClosed
	}
	of, forced, err := e.rules.forcedBy(scope)
	if err == nil {
		err = checkControl(of, scope, state)
	}
	if err != nil {
		return ForcedChange{}, nil, err
	}
	return e.setForced(forced(), scope, state, orders)
}

// forcedBy returns the kind of the rules of a scope, and what returns the state that is forced on it. The caller
// holds s.mu.
func (s *ruleStore) forcedBy(scope Scope) (of rule.Definition, forced func() *inforce.ForcedState, err error) {
	if scope.Resource != "" {
		return nil, nil, errors.New("core: a state is forced on a rule, or on all rules of a kind: Scope has a Resource")
	}
	if scope.Rule != "" {
		key := rule.Key{Kind: scope.Kind, Name: scope.Rule}
		a := s.inForce(key)
		if a == nil {
			return nil, nil, unknownRule(key)
		}
		return a.Version.Type(), func() *inforce.ForcedState { return &a.Forced }, nil
	}
	kinds := s.book.Kinds()
	i := slices.IndexFunc(kinds, func(d rule.Definition) bool { return d.Kind() == scope.Kind })
	if i < 0 {
		return nil, nil, unknownKind(scope.Kind)
	}
	return kinds[i], func() *inforce.ForcedState { return s.forcedKind(scope.Kind) }, nil
}

// setForced sets what is forced on a scope, and returns the rules that this concerns. The caller holds
// rules.mu.
func (e *Engine) setForced(of *inforce.ForcedState, scope Scope, state string, orders []Order) (ForcedChange, []forcedRule, error) {
	after, err := e.newForced(scope, state, orders)
	if err != nil {
		return ForcedChange{}, nil, err
	}
	change := e.forcedChange(of.Set(after), after, false)
	e.resources.Forcings.Add(1)
	e.keepForcedTime(after)
	e.noteForced(&change)
	return change, e.forcedRules(after.Concerns), nil
}

// checkControl returns why a state cannot be forced on rules of a kind.
func checkControl(of rule.Definition, scope Scope, state string) error {
	switch controls := of.Controls(); {
	case len(controls) == 0:
		return fmt.Errorf("core: the state of a rule of kind %q cannot be forced", of.Kind())
	case state != "" && !slices.Contains(controls, state):
		return fmt.Errorf("core: %s cannot be forced to be %q: the states are %s, and \"\" to release it",
			scope, state, strings.Join(controls, ", "))
	}
	return nil
}

// forcedKind returns what is forced on the rules of a kind. The caller holds s.mu.
func (s *ruleStore) forcedKind(kind rule.Kind) *inforce.ForcedState {
	if s.forced[kind] == nil {
		s.forced[kind] = new(inforce.ForcedState)
	}
	return s.forced[kind]
}

// forcedRules returns some of the rules in force with their limiters. The caller holds
// rules.mu.
func (e *Engine) forcedRules(include func(*inforce.Rule) bool) (list []forcedRule) {
	g := &e.resources
	g.SwapMu.Lock()
	defer g.SwapMu.Unlock()
	own := make(map[*inforce.Rule]int) // the index of a rule that has a limiter for each resource
	for _, a := range e.rules.all() {
		switch {
		case !include(a):
		case a.SharesLimiter:
			list = append(list, forcedRule{a, []rule.Controllable{a.Shared.Limiter.(rule.Controllable)}})
		default:
			own[a] = len(list)
			list = append(list, forcedRule{rule: a})
		}
	}
	if len(own) == 0 {
		return list
	}
	for _, r := range append(g.Table.All(), g.Overflow) {
		for _, s := range r.States {
			if i, ok := own[s.Rule]; ok {
				list[i].limiters = append(list[i].limiters, s.Own.Limiter.Limiter.(rule.Controllable))
			}
		}
	}
	return list
}
