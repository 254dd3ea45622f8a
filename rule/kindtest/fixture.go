package kindtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// reporter is what the suite needs of a *testing.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
}

// fixture is one test of one rule.
type fixture struct {
	reporter
	options Options
	of      Rule
	now     clock.Instant
	signals *signals
	lists   *list.Registry
	version uint64
	changes *changes // that limiters report
}

// begin is the instant at which tests begin that say no other: not at the edge of a second, an hour or a day.
const begin = clock.Instant(1_900_000_000_123_456_789)

// patience is how long the suite waits for a goroutine that has to come to an end.
const patience = time.Minute

func newFixture(t reporter, o Options, r Rule) *fixture {
	f := &fixture{reporter: t, options: o, of: r, now: begin, signals: new(signals), lists: list.NewRegistry()}
	f.changes = &changes{f: f, patience: patience}
	if !r.Start.IsZero() {
		f.now = clock.Instant(r.Start.UnixNano())
	}
	if r.Rule != nil {
		f.of.Rule = r.Rule.WithDefaults()
		f.of.Resource = cmp.Or(r.Resource, f.of.Rule.Target().Resource)
		if r.Stricter == nil {
			f.of.Stricter = f.of.Rule
		}
		f.of.Stricter = f.of.Stricter.WithDefaults()
	}
	if r.Value == nil {
		f.of.Value = func(n int) string { return fmt.Sprintf("value-%d", n) }
	}
	return f
}

// table returns the kinds that come with Penstock, and the one under test.
func (f *fixture) table() *rules.Table { return rules.NewTable(f.custom()...) }

// custom returns the kind unless it comes with Penstock.
func (f *fixture) custom() []rule.Definition {
	if slices.ContainsFunc(rules.NewTable().Definitions(), func(d rule.Definition) bool { return d.Kind() == f.options.Kind.Kind() }) {
		return nil
	}
	return []rule.Definition{f.options.Kind}
}

// env returns what the engine gives to the limiter of the next version.
func (f *fixture) env() rule.Env {
	f.version++
	return rule.Env{
		Version: f.version, Resource: f.of.Resource, Now: f.now, Lists: f.lists, Signals: f.signals, Seed: 1,
		Until:   func(t time.Time) time.Duration { return t.Sub(f.now.Time()) },
		Changed: f.changes.add,
	}
}

// limiter returns a new limiter of the rule.
func (f *fixture) limiter() rule.Limiter {
	return f.divided(f.of.Rule.Clone().NewLimiter(f.env()))
}

// divided returns the limiter that the engine asks for calls of the resource.
func (f *fixture) divided(l rule.Limiter) rule.Limiter {
	if d, ok := l.(optional.Divided); ok {
		return d.For(f.of.Resource)
	}
	return l
}

// adopt returns a limiter of the stricter rule that goes on from the present one. It skips the
// test if the kind starts anew.
func (f *fixture) adopt(present rule.Limiter) rule.Limiter { return f.adoptAs(present, f.of.Stricter) }

// adoptAs is adopt of a rule.
func (f *fixture) adoptAs(present rule.Limiter, to rule.Rule) rule.Limiter {
	if _, ok := present.(optional.Divided); ok {
		f.Skip("the versions of a divided limiter are made of the whole one")
	}
	next := to.Clone().Adopt(present, f.env())
	if next == nil {
		f.Skip("a changed rule starts anew")
	}
	return next
}

// call returns a call with the nth value, at the present instant.
func (f *fixture) call(n int) rule.Call {
	c := rule.Call{Now: f.now, Tokens: 1, Attribute: f.attribute(n)}
	if f.options.Kind.Reason() == rule.Injected {
		c.SetNumber(uint32(n)*2_654_435_761 | 1)
	}
	return c
}

// attribute returns what calls with the nth value have of what the rule looks at.
func (f *fixture) attribute(n int) rule.Attribute {
	keys := f.of.Rule.Attributes()
	switch len(keys) {
	case 0:
		return rule.Attribute{}
	case 1:
		return rule.String(f.of.Value(n))
	}
	var parts [rule.MaxKeys]rule.Attribute
	for i := range keys {
		parts[i] = rule.String(f.of.Value(n))
	}
	return rule.Composite(&parts, len(keys))
}

// acquire asks a limiter as the engine does, which goes on at a later instant if the limiter has
// seen one.
func (f *fixture) acquire(l rule.Limiter, c rule.Call) (rule.Ticket, rule.Decision) {
	f.Helper()
	for range 3 {
		ticket, decision := l.Acquire(c)
		switch decision {
		case rule.Pass, rule.Block:
			return ticket, decision
		case rule.Wait:
			if _, ok := l.(rule.Queue); !ok {
				f.Fatalf("Acquire says Wait, but the limiter is no rule.Queue")
			}
			return ticket, decision
		case rule.Stale:
			if ticket == 0 {
				f.Fatalf("Acquire says Stale at %d without a later instant, though no newer version of the rule was asked", c.Now)
			}
			if clock.Instant(ticket) <= c.Now {
				f.Fatalf("Acquire says Stale to a call at %d and sends it to %d, which is no later instant", c.Now, ticket)
			}
			c.Now = clock.Instant(ticket)
		default:
			f.Fatalf("Acquire says %d, which it may not", decision)
		}
	}
	f.Fatalf("Acquire says Stale three times, each time with a later instant: calls would never be decided")
	return 0, rule.Block
}

// exhaust takes all that calls with the nth value get now, at most of so many calls, and returns
// their tickets.
func (f *fixture) exhaust(l rule.Limiter, n, most int) (tickets []rule.Ticket) {
	f.Helper()
	for range most {
		ticket, decision := f.acquire(l, f.call(n))
		if decision != rule.Pass {
			break
		}
		tickets = append(tickets, ticket)
	}
	return tickets
}

// expect takes all that passes, and fails unless that is so much.
func (f *fixture) expect(l rule.Limiter, n, want int, when string) []rule.Ticket {
	f.Helper()
	tickets := f.exhaust(l, n, want+1)
	if len(tickets) > want {
		f.Fatalf("%s: more than %d calls pass at one instant", when, want)
	}
	if len(tickets) < want {
		f.Fatalf("%s: %d calls pass at one instant, not %d", when, len(tickets), want)
	}
	return tickets
}

// limited skips the test of a rule that lets all calls pass, or none.
func (f *fixture) limited() {
	if f.of.Passes <= 0 {
		f.Skip("the rule does not say how many calls pass")
	}
}

// end ends calls that have passed, with success.
func (f *fixture) end(l rule.Limiter, tickets []rule.Ticket) {
	for _, t := range tickets {
		if l, ok := l.(rule.Finisher); ok {
			l.Done(t, rule.Exit{Now: f.now, Start: f.now})
		}
	}
}

func (f *fixture) giveBack(l rule.Limiter, tickets []rule.Ticket) {
	for _, t := range tickets {
		l.GiveBack(f.now, t, 1)
	}
}

// again returns the time after which as many calls pass again.
func (f *fixture) again() time.Duration {
	if f.of.Again == rule.Never {
		return 0
	}
	return f.of.Again
}

// forever is the patience of calls that wait as long as need be.
func (f *fixture) forever() rule.Patience { return rule.Patience{Since: f.now, Until: math.MaxInt64} }

// forget moves the time on until what was taken does not count any more.
func (f *fixture) forget() { f.now = f.now.Add(f.again() + time.Hour) }

// signals are readings of signals that nobody samples.
type signals struct {
	mu       sync.Mutex
	readings map[rule.Signal]*rule.Reading
}

func (s *signals) Reading(name rule.Signal) *rule.Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readings == nil {
		s.readings = make(map[rule.Signal]*rule.Reading)
	}
	if s.readings[name] == nil {
		s.readings[name] = new(rule.Reading)
	}
	return s.readings[name]
}
