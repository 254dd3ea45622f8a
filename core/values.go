package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// ValueState is the state of one value of a rule that has a limit for each value of an attribute.
type ValueState struct {
	// Resource is the one that the limit is for; "" if several share it.
	Resource string

	Value string // for people, perhaps cut or masked

	Quota    *rule.Quota   // what is left of its limit; nil if that is not known, or calls under way are limited
	Used     float64       // tokens that are missing to be as new; NaN if that is not known
	InFlight int64         // calls under way, of a rule that limits them
	Places   int64         // how many may be under way, of such a rule; else 0
	Penalty  time.Duration // how long the value is refused still; 0 if it is not

	// Instance says that the limit is one of the whole fleet, and that this is what the instance
	// knows of it.
	Instance bool
}

// ValueStates returns the state of the value that a call with these options has for a rule that has
// a limit for each value, such as a hotParam rule: what it has used, what remains, and until when it
// has a penalty. A rule with a limit for each of many resources has a state on each: those are
// returned, by name, on which the value is not as new. The error says that there is no such rule in
// force, or which attribute the options lack.
func (e *Engine) ValueStates(key rule.Key, opts ...Option) ([]ValueState, error) {
	kept, call, err := e.valueKeepers(key, opts)
	if err != nil {
		return nil, err
	}
	var states []ValueState
	for _, k := range kept {
		of := k.limiter.ValueOf(call)
		s := ValueState{
			Resource: k.resource, Value: of.Value, Quota: of.Quota, Used: of.Used, InFlight: of.InFlight, Places: of.Places,
			Instance: of.Instance,
		}
		if of.Penalty != 0 {
			s.Penalty = max(0, of.Penalty.Sub(call.Now))
		}
		if len(kept) == 1 || s.Used > 0 || s.InFlight > 0 || s.Penalty > 0 || s.Instance && s.Quota != nil || isRecharged(s.Quota) {
			states = append(states, s)
		}
	}
	return states, nil
}

// ResetValue makes the value as new that a call with these options has for a rule that has a limit for each
// value, on all resources that the rule guards: it has used nothing, and has no penalty. The limit of a
// whole fleet cannot be reset on one instance, nor can calls under way. The error says that there is no
// such rule in force, which attribute the options lack, or why it cannot be done.
func (e *Engine) ResetValue(key rule.Key, opts ...Option) error {
	return e.actOnValue(key, opts, optional.ValueKeeper.ResetValue)
}

// LiftPenalty ends the penalty of the value that a call with these options has for such a rule, on this
// instance. What it has used stays used. The error is one of [Engine.ResetValue].
func (e *Engine) LiftPenalty(key rule.Key, opts ...Option) error {
	return e.actOnValue(key, opts, optional.ValueKeeper.LiftPenalty)
}

func (e *Engine) actOnValue(key rule.Key, opts []Option, act func(optional.ValueKeeper, rule.Call) error) error {
	kept, call, err := e.valueKeepers(key, opts)
	if err != nil {
		return err
	}
	for _, k := range kept {
		if err := act(k.limiter, call); err != nil {
			return fmt.Errorf("core: rule %v: %w", key, err)
		}
	}
	return nil
}

// valueKeeper is a limiter of a rule with a limit for each value.
type valueKeeper struct {
	resource string
	limiter  optional.ValueKeeper
}

// valueKeepers returns the limiters of a rule, and a call with the value that they are asked about.
func (e *Engine) valueKeepers(key rule.Key, opts []Option) (kept []valueKeeper, call rule.Call, err error) {
	a, limiters, err := e.limitersOf(key)
	if err != nil {
		return nil, call, err
	}
	for _, l := range limiters {
		if keeper, ok := l.limiter.(optional.ValueKeeper); ok {
			kept = append(kept, valueKeeper{l.resource, keeper})
		}
	}
	if len(a.Attributes()) == 0 || len(kept) < len(limiters) {
		return nil, call, fmt.Errorf("core: rule %v has no limit for each value", key)
	}
	call, err = valueCall(&inforce.Planned{Rule: a}, e.clock.Now(), opts)
	return kept, call, err
}

// namedLimiter is a limiter of a rule, and the resource that it is for.
type namedLimiter struct {
	resource string
	limiter  rule.Limiter
}

// limitersOf returns a rule in force, and all of its limiters by the names of their resources.
func (e *Engine) limitersOf(key rule.Key) (of rule.Rule, list []namedLimiter, err error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	a := e.rules.inForce(key)
	switch {
	case e.isClosed():
		return nil, nil, ErrClosed
	case a == nil:
		return nil, nil, fmt.Errorf("core: no rule %v is in force", key)
	}
	g := &e.resources
	g.SwapMu.Lock()
	defer g.SwapMu.Unlock()
	if a.SharesLimiter {
		return a.Version, []namedLimiter{{a.Resource, a.Shared.Limiter}}, nil
	}
	for _, r := range append(g.Table.All(), g.Overflow) {
		for _, s := range r.States {
			if s.Rule == a {
				list = append(list, namedLimiter{r.Name, s.Own.Limiter.Limiter})
			}
		}
	}
	slices.SortFunc(list, func(a, b namedLimiter) int { return cmp.Compare(a.resource, b.resource) })
	return a.Version, list, nil
}
