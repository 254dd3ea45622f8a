package core

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/core/internal/signals"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// stateLines is how many changes of state a second are logged, for all resources together.
const stateLines = 100

// limiterMaker makes the limiters of an engine, and hears what they report.
type limiterMaker struct {
	*callEnv
	lists   *list.Registry
	signals *signals.Set
	fleet   fleet.Member       // nil without a backend
	seed    uint64             // of what limiters choose at random; 0 for none
	foreign map[rule.Kind]bool // the kinds of [Config.Kinds]
	until   func(time.Time) time.Duration
	series  atomic.Uint64 // the latest of call.VersionedLimiter

	stateLines, warningLines lines.Budget
}

// Planner implements [registry.Plans].
func (m *limiterMaker) Planner(resource string, switches *inforce.Switches) inforce.Planner {
	return inforce.Planner{Resource: resource, Switches: switches, InFleet: m.fleet != nil, Observed: m.observesPasses()}
}

// NewState implements [registry.Plans].
func (m *limiterMaker) NewState(
	of *inforce.Rule, version rule.Rule, resource string, node *leap.Node, since uint64, now clock.Instant,
) *inforce.State {
	s := inforce.NewState(of, node.Calls())
	if own := s.Own; own != nil {
		own.Version, own.Transitions = version, inforce.NewTransitions(version)
		own.Limiter = limiterEnv{m, since, now}.newLimiter(of, version, resource, own.Transitions)
	}
	s.Refusals = call.NewTalliedRefusals(node, resource, &of.Key, version)
	return s
}

func (m *limiterMaker) init(env *callEnv, config *Config, of *signals.Set, member fleet.Member) {
	m.callEnv, m.lists, m.signals, m.fleet, m.seed = env, config.Lists, of, member, config.Seed
	m.until = env.clock.Until
	m.foreign = make(map[rule.Kind]bool)
	for _, kind := range config.Kinds {
		m.foreign[kind.Kind()] = true
	}
}

// isForeign says whether a kind is one of [Config.Kinds].
func (m *limiterMaker) isForeign(kind rule.Kind) bool { return m.foreign[kind] }

// limiterEnv is what limiters are made with.
type limiterEnv struct {
	*limiterMaker
	generation uint64
	now        clock.Instant
}

// newLimiter returns a limiter for a version of a rule on a resource.
func (l limiterEnv) newLimiter(a *inforce.Rule, version rule.Rule, resource string, counts *inforce.Transitions) call.VersionedLimiter {
	env := l.env(a, resource, counts)
	limiter, ok := l.make(version, nil, resource, &env)
	if !ok {
		limiter = new(noLimiter)
	}
	versioned := call.VersionedLimiter{Limiter: limiter, Series: l.series.Add(1)}
	if a.HasPattern() && (a.SharesLimiter || resource == rule.OtherResources) {
		versioned.Pending = new(call.PendingCalls)
	}
	return versioned
}

// adopt returns a limiter for a version of a rule that goes on from the present one;
// false if that cannot be.
func (l limiterEnv) adopt(
	a *inforce.Rule, version rule.Rule, resource string, counts *inforce.Transitions, present call.VersionedLimiter,
) (next call.VersionedLimiter, ok bool) {
	if _, none := present.Limiter.(*noLimiter); none {
		return call.VersionedLimiter{}, false
	}
	env := l.env(a, resource, counts)
	limiter, made := l.make(version, present.Limiter, resource, &env)
	if !made {
		return present, true // it goes on by the version before
	}
	return call.VersionedLimiter{Limiter: limiter, Series: present.Series, Pending: present.Pending}, limiter != nil
}

func (l limiterEnv) env(a *inforce.Rule, resource string, counts *inforce.Transitions) rule.Env {
	env := rule.Env{
		Version: l.generation, Now: l.now, Until: l.until, Forced: a.ForcedState(),
		Resource: a.ResourceOf(resource),
		Lists:    l.lists, Signals: l.signals, Fleet: l.fleet, Seed: l.seedFor(a, resource),
		Changed: func(clock.Instant, string, string, string) {},
		Warn:    l.warning(a, resource),
		Sources: true,
	}
	if counts != nil {
		env.Changed = func(at clock.Instant, from, to, because string) {
			counts.Add(from, to)
			l.stateChanged(StateChange{
				At: at, Resource: resource, Kind: a.Key.Kind, Rule: a.Key.Name, From: from, To: to, Because: because,
			}, a.ForcedBy())
		}
	}
	return env
}

// warning returns a function that logs what a limiter of a rule says.
func (m *limiterMaker) warning(a *inforce.Rule, resource string) func(message string) {
	return func(message string) { m.warnOf(a.Key, resource, message) }
}

// warnOf logs what a limiter of a rule says, unless limiters have said much in this second.
func (m *limiterMaker) warnOf(key rule.Key, resource, message string) {
	m.events.add(Event{At: m.clock.Now(), Type: eventWarning, Resource: resource, Kind: key.Kind, Rule: key.Name, Text: message})
	if _, ok := m.warningLines.Take(m.clock.Now(), stateLines, m.clock.Now); !ok {
		return
	}
	m.log.Warn("penstock: "+message, slog.String("resource", lines.Cut(resource)),
		slog.String("kind", string(key.Kind)), slog.String("rule", lines.Cut(key.Name)))
}

// stateChanged reports a change of state to the observer and, unless there were many in this
// second, to the log. forced is what an operator has forced; nil for nothing.
func (m *limiterMaker) stateChanged(change StateChange, forced *inforce.Forced) {
	event := Event{
		At: change.At, Type: eventState, Resource: change.Resource, Kind: change.Kind, Rule: change.Rule,
		From: change.From, To: change.To, Forced: forced.StateOf(),
	}
	if forced != nil {
		event.By, change.Because = forced.By, cmp.Or(change.Because, forced.Cause())
	}
	event.Text = change.Because
	m.events.add(event)
	if skipped, ok := m.stateLines.Take(change.At, stateLines, m.clock.Now); ok {
		facts := []any{
			slog.String("resource", lines.Cut(change.Resource)),
			slog.String("kind", string(change.Kind)),
			slog.String("rule", lines.Cut(change.Rule)),
			slog.String("from", change.From),
			slog.String("to", change.To),
		}
		if change.Because != "" {
			facts = append(facts, slog.String("because", change.Because))
		}
		if skipped > 0 {
			facts = append(facts, slog.Uint64("linesSkipped", skipped))
		}
		m.log.Warn("penstock: the state of a rule changed", facts...)
	}
	if m.observer.StateChanged != nil {
		m.observer.StateChanged(change)
	}
}

// seedFor returns the seed of a limiter of a rule on a resource, 0 if the engine has none.
func (l limiterEnv) seedFor(a *inforce.Rule, resource string) uint64 {
	if l.seed == 0 {
		return 0
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %q %q %q", l.seed, a.Key.Kind, a.Key.Name, resource)
	return max(1, hash.Sum64())
}

// make makes a limiter of a version of a rule, which goes on from the present one if that is not nil. A
// kind of the program that fails is logged, and made is false.
func (m *limiterMaker) make(of rule.Rule, present rule.Limiter, resource string, env *rule.Env) (limiter rule.Limiter, made bool) {
	if !m.isForeign(of.Type().Kind()) {
		return limiterOf(of, present, env), true
	}
	return m.makeForeign(of, present, resource, *env)
}

func limiterOf(of rule.Rule, present rule.Limiter, env *rule.Env) rule.Limiter {
	if present == nil {
		return of.NewLimiter(*env)
	}
	return of.Adopt(present, *env)
}

func (m *limiterMaker) makeForeign(of rule.Rule, present rule.Limiter, resource string, env rule.Env) (limiter rule.Limiter, made bool) {
	err := ruleset.Guarded(func() { limiter = limiterOf(of, present, &env) })
	if err != nil {
		_ = m.kindFailed(of.Key(), resource, err)
	}
	return limiter, err == nil
}

// noLimiter stands in for a limiter that its kind could not make on a resource, though it could make
// one when the rule was tried. It lets all calls pass.
type noLimiter struct{}

func (noLimiter) Acquire(rule.Call) (rule.Ticket, rule.Decision) { return 0, rule.Pass }

func (noLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}

func (noLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

func (noLimiter) Status(clock.Instant) rule.Status { return rule.Status{} }

func (noLimiter) Idle(clock.Instant) bool { return true }

func (noLimiter) CountPass(clock.Instant, int32) {}

func (noLimiter) Control(clock.Instant, string) {}

// kindFailed logs that the kind of a rule has failed, on a resource if that is not "", and returns it as
// an error.
func (m *limiterMaker) kindFailed(key rule.Key, resource string, err error) error {
	attrs := []any{slog.String("kind", string(key.Kind)), slog.String("rule", lines.Cut(key.Name)), slog.Any("error", err)}
	if resource != "" {
		attrs = append(attrs, slog.String("resource", lines.Cut(resource)))
	}
	if failure := (*ruleset.Failure)(nil); errors.As(err, &failure) && failure.Stack != nil {
		attrs = append(attrs, slog.String("stack", string(failure.Stack)))
	}
	m.log.Error("penstock: a kind of rules has failed", attrs...)
	m.events.add(Event{At: m.clock.Now(), Type: eventWarning, Resource: resource, Kind: key.Kind, Rule: key.Name, Err: err.Error()})
	return fmt.Errorf("core: the kind of rule %v %w", key, err)
}

// restore has a rule that comes into force go on from one that was removed; false if
// that cannot be.
func (l limiterEnv) restore(a *inforce.Rule, before *inforce.RemovedRule) (ok bool) {
	a.Forced.Store(before.Forced)
	if a.Shared, ok = l.adopt(a, a.Version, a.SharedName(), before.Transitions, before.Limiter); ok {
		a.Transitions = before.Transitions
	}
	return ok
}
