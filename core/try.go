package core

import (
	"errors"

	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Kinds of the program are code that the engine does not know. What such a kind does while rules are
// put in force is guarded: a rule that it cannot make a limiter of is refused like one that has a
// mistake, before anything has changed. So is one of which the backend of the fleet cannot share the limit.

// tries returns what tries rules, nil if it could find nothing.
func (e *Engine) tries(config *Config) func([]rules.Replacement) error {
	if len(config.Kinds) == 0 && !e.fleet.IsLimited() {
		return nil
	}
	return e.try
}

// try says why rules cannot be put in force, because their kinds fail, or the backend of the fleet cannot
// do what they need. It makes a limiter of each of a kind of the program, and drops it.
func (e *Engine) try(replaced []rules.Replacement) error {
	var failures []error
	for _, r := range replaced {
		if r.To == nil {
			continue
		}
		if e.limiters.isForeign(r.To.Type().Kind()) {
			if err := ruleset.Guarded(func() { e.tryRule(r.To.Clone()) }); err != nil {
				failures = append(failures, e.limiters.kindFailed(r.To.Key(), "", err))
				continue
			}
		}
		if err := e.fleet.Check(r.To); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// tryRule does with a rule what putting it in force does.
func (e *Engine) tryRule(r rule.Rule) {
	a := inforce.NewRule(r, new(inforce.ForcedState), e.exempt)
	r.Attributes()
	r.Lists()
	r.Signals()
	r.Hints()
	r.Fleet()
	r.Places()
	r.Answer()
	r.Forbids()
	env := limiterEnv{&e.limiters, e.generation.Load() + 1, e.clock.Now()}
	limiter := r.NewLimiter(env.env(a, a.SharedName(), nil))
	if limiter == nil {
		panic("New has returned nil")
	}
	inforce.Try(a, r, limiter)
	if retirer, ok := limiter.(rule.Retirer); ok {
		retirer.Retire(env.now)
	}
}
