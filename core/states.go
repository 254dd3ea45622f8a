package core

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// Control forces the state of a rule, on all resources that it guards, until it is
// released with "": as when an operator opens a circuit breaker by hand. The state
// stays forced while the rule keeps its name and what it guards. The error says that
// there is no such rule in force, or that rules of the kind cannot be forced so.
func (e *Engine) Control(key rule.Key, state string) error {
	a, limiters, err := e.force(key, state)
	if err != nil {
		return err
	}
	for {
		now := e.clock.Now()
		for _, limiter := range limiters { // without a lock: the observer may ask the engine
			limiter.Control(now, state)
		}
		latest := a.forcedState() // another goroutine may have forced it meanwhile
		if latest == state {
			return nil
		}
		state = latest
	}
}

// force notes the state that is forced and returns the limiters that exist. Those that
// are made from now on begin with it, see also [registry.getOrAdd].
func (e *Engine) force(key rule.Key, state string) (a *activeRule, limiters []rule.Controllable, err error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return nil, nil, ErrClosed
	}
	if a = e.rules.active[key]; a == nil {
		return nil, nil, fmt.Errorf("core: no rule %v is in force", key)
	}
	controls := a.rule.Type().Controls()
	switch {
	case len(controls) == 0:
		return nil, nil, fmt.Errorf("core: the state of a rule of kind %q cannot be forced", key.Kind)
	case state != "" && !slices.Contains(controls, state):
		return nil, nil, fmt.Errorf("core: rule %v cannot be forced to be %q: the states are %s, and \"\" to release it",
			key, state, strings.Join(controls, ", "))
	}
	if a.forced.Store(&state); state == "" {
		a.forced.Store(nil)
	}
	e.resources.swapMu.Lock()
	defer e.resources.swapMu.Unlock()
	return a, e.resources.limitersOf(a), nil
}

// limitersOf returns all limiters of a rule. The caller holds g.swapMu.
func (g *registry) limitersOf(a *activeRule) (limiters []rule.Controllable) {
	if a.sharesLimiter {
		return []rule.Controllable{a.shared.Limiter.(rule.Controllable)}
	}
	for _, r := range append(g.table.all(), g.overflowResource) {
		for _, s := range r.states {
			if s.rule == a {
				limiters = append(limiters, s.limiter.Limiter.(rule.Controllable))
			}
		}
	}
	return limiters
}
