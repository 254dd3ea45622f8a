package core

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Kinds of the program are code that the engine does not know. What such a kind does while rules are
// put in force is guarded: a rule that it cannot make a limiter of is refused like one that has a
// mistake, before anything has changed.

// try says why rules cannot be put in force, because their kinds fail. It makes a limiter of each,
// and drops it.
func (e *Engine) try(replaced []rules.Replacement) error {
	var failures []error
	for _, r := range replaced {
		if r.To == nil || !e.limiters.isForeign(r.To.Type().Kind()) {
			continue
		}
		if err := ruleset.Guarded(func() { e.tryRule(r.To.Clone()) }); err != nil {
			failures = append(failures, e.limiters.kindFailed(r.To.Key(), "", err))
		}
	}
	return errors.Join(failures...)
}

// tryRule does with a rule what putting it in force does.
func (e *Engine) tryRule(r rule.Rule) {
	a := newActiveRule(r, new(forcedState), e.exempt)
	r.Attributes()
	r.Lists()
	r.Signals()
	r.Hints()
	r.Fleet()
	r.Answer()
	r.Forbids()
	env := limiterEnv{&e.limiters, e.generation.Load() + 1, e.clock.Now()}
	limiter := r.NewLimiter(env.env(a, a.sharedName(), nil))
	if limiter == nil {
		panic("New has returned nil")
	}
	newStep(&plannedEntry{
		planned: planned{rule: r, state: &ruleState{rule: a, refusals: new(refusals)}},
		limiter: versionedLimiter{Limiter: limiter, first: limiter},
	})
	if retirer, ok := limiter.(rule.Retirer); ok {
		retirer.Retire(env.now)
	}
}

// kindFailed logs that the kind of a rule has failed, on a resource if that is not "", and returns it as
// an error.
func (m *limiterMaker) kindFailed(key rule.Key, resource string, err error) error {
	attrs := []any{slog.String("kind", string(key.Kind)), slog.String("rule", loggable(key.Name)), slog.Any("error", err)}
	if resource != "" {
		attrs = append(attrs, slog.String("resource", loggable(resource)))
	}
	if failure := (*ruleset.Failure)(nil); errors.As(err, &failure) && failure.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(failure.Stack)))
	}
	m.log.Error("penstock: a kind of rules has failed", attrs...)
	m.events.add(Event{At: m.clock.Now(), Type: EventWarning, Resource: resource, Kind: key.Kind, Rule: key.Name, Err: err.Error()})
	return fmt.Errorf("core: the kind of rule %v %w", key, err)
}

// make makes a limiter of a version of a rule, which goes on from the present one if that is not nil. A
// kind of the program that fails is logged, and made is false.
func (m *limiterMaker) make(of rule.Rule, present rule.Limiter, resource string, env rule.Env) (limiter rule.Limiter, made bool) {
	if !m.isForeign(of.Type().Kind()) {
		return limiterOf(of, present, env), true
	}
	return m.makeForeign(of, present, resource, env)
}

func limiterOf(of rule.Rule, present rule.Limiter, env rule.Env) rule.Limiter {
	if present == nil {
		return of.NewLimiter(env)
	}
	return of.Adopt(present, env)
}

func (m *limiterMaker) makeForeign(of rule.Rule, present rule.Limiter, resource string, env rule.Env) (limiter rule.Limiter, made bool) {
	err := ruleset.Guarded(func() { limiter = limiterOf(of, present, env) })
	if err != nil {
		_ = m.kindFailed(of.Key(), resource, err)
	}
	return limiter, err == nil
}

// noLimiter stands in for a limiter that its kind could not make on a resource, though it could make
// one when the rule was tried. It lets all calls pass.
type noLimiter struct{}

func (noLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) { return 0, rule.Pass }
func (noLimiter) GiveBack(clock.Instant, rule.Ticket, int32)     {}
func (noLimiter) RetryAfter(rule.Call) time.Duration             { return 0 }
func (noLimiter) Status(clock.Instant) rule.Status               { return rule.Status{} }
func (noLimiter) Idle(clock.Instant) bool                        { return true }
func (noLimiter) CountPass(clock.Instant, int32)                 {}
func (noLimiter) Control(clock.Instant, string)                  {}

// each calls fn, which is or calls code of the program, for all of a list, also for those behind one
// for which fn panics.
func each[T any](list []T, fn func(T)) {
	i := 0
	defer func() {
		if i < len(list) {
			each(list[i+1:], fn)
		}
	}()
	for ; i < len(list); i++ {
		fn(list[i])
	}
}
