// Package standalone has what limiters need that are used without an engine: a check of their
// rule, and the wait of a call.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// Check returns a rule with its defaults, and the error of its calls that are refused. The
// error of Check names everything that is wrong with the rule. Common are the fields of the
// rule; what they say about which calls it is for has no meaning without an engine, nor have the
// fields that others names.
func Check[R comparable](kind *rule.Type[R], r *R, common rule.Common, others ...Field) (complete rule.Rule, refused *rule.RefusedError, err error) {
	others = append(others, Without("match", *common.Match != ""), Without("perResource", *common.Shared),
		Without("origin", *common.Origin != ""), Without("shadow", *common.Shadow),
		Without("related", common.Related != nil && *common.Related != ""),
		Without("except", common.Except != nil && *common.Except != rule.Strings{}))
	var faults rule.Faults
	for _, f := range others {
		if f.isSet {
			faults.Add(f.name, "needs an engine: remove it")
		}
	}
	if *common.Name == "" {
		*common.Name = string(kind.Kind())
	}
	if *common.Resource == "" {
		*common.Resource = *common.Name
	}
	complete = kind.Of(*r).WithDefaults()
	*r = kind.WithDefaults(*r)
	for _, fault := range complete.Faults() {
		if !slices.ContainsFunc(faults, func(other rule.Fault) bool { return other.Field == fault.Field }) {
			faults = append(faults, fault)
		}
	}
	var all []error
	for _, fault := range faults {
		all = append(all, fmt.Errorf("%s: %s %s", complete.Key(), fault.Field, fault.Message))
	}
	return complete, &rule.RefusedError{Kind: kind.Kind(), Rule: *common.Name, Reason: kind.Reason()}, errors.Join(all...)
}

// Field is a field of a rule that needs an engine.
type Field struct {
	name  string
	isSet bool
}

// Without returns a field that needs an engine, and whether the rule has it.
func Without(name string, isSet bool) Field { return Field{name, isSet} }

// Env is that of the limiter of a rule without an engine. Changed gets changes of its state, unless
// it is nil.
func Env(now clock.Instant, changed func(from, to string)) rule.Env {
	return rule.Env{Version: 1, Now: now, Lists: new(list.Registry), Changed: func(_ clock.Instant, from, to, _ string) {
		if changed != nil {
			changed(from, to)
		}
	}}
}

// Last returns the last of the options that a program has given; the zero value if it has given none.
func Last[T any](options []T) (last T) {
	if len(options) > 0 {
		last = options[len(options)-1]
	}
	return last
}

// Clock returns the clock, that of the system if it is nil.
func Clock(c clock.Clock) clock.Clock {
	if c == nil {
		return clock.System()
	}
	return c
}

// CheckControl returns an error unless limiters of the kind can be forced into the state.
func CheckControl(kind rule.Definition, state string) error {
	if controls := kind.Controls(); state != "" && !slices.Contains(controls, state) {
		return fmt.Errorf("%s: there is no state %q to force: %s are, and \"\" releases", kind.Kind(), state, strings.Join(controls, ", "))
	}
	return nil
}

// Waker wakes a call that waits.
type Waker chan struct{}

// NewWaker returns a waker that has not woken yet.
func NewWaker() Waker { return make(Waker, 1) }

// Wake wakes the call; several times at once count as one.
func (w Waker) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Pause waits until the call is woken, until d has passed since now, unless d is 0, or until
// the context ends: then it returns that error. It returns the instant at which the wait ends.
func (w Waker) Pause(ctx context.Context, c clock.Clock, now clock.Instant, d time.Duration) (clock.Instant, error) {
	var over <-chan time.Time
	if d > 0 {
		timer := clock.TimerAt(c, now.Add(d))
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-w:
	case <-over:
	case <-ctx.Done():
	}
	return c.Now(), ctx.Err()
}

// Deadline returns the last instant at which the call can wait, as its context says.
func Deadline(ctx context.Context, c clock.Clock, now clock.Instant) clock.Instant {
	if deadline, ok := ctx.Deadline(); ok {
		return now.Add(max(0, c.Until(deadline)))
	}
	return clock.Instant(1<<63 - 1)
}

// Tickets asks the limiter of one rule.
type Tickets struct {
	limiter rule.Limiter
	queue   rule.Queue // nil if calls cannot wait
	clock   clock.Clock
	refused *rule.RefusedError
}

// NewTickets returns those of a limiter.
func NewTickets(limiter rule.Limiter, c clock.Clock, refused *rule.RefusedError) Tickets {
	queue, _ := limiter.(rule.Queue)
	return Tickets{limiter: limiter, queue: queue, clock: c, refused: refused}
}

// Try returns a ticket for a call of so many tokens, and the instant at which it has passed with it;
// or an error.
func (t *Tickets) Try(tokens int32) (rule.Ticket, clock.Instant, error) {
	ticket, now, decision := t.acquire(tokens)
	if decision != rule.Pass {
		return 0, now, t.refused
	}
	return ticket, now, nil
}

func (t *Tickets) acquire(tokens int32) (ticket rule.Ticket, now clock.Instant, decision rule.Decision) {
	for now = t.clock.Now(); ; now = max(t.clock.Now(), clock.Instant(ticket)) {
		if ticket, decision = t.limiter.Acquire(rule.Call{Now: now, Tokens: tokens}); decision != rule.Stale {
			return ticket, now, decision
		}
	}
}

// Wait is Try for a call that waits as long as its rule and its context let it.
func (t *Tickets) Wait(ctx context.Context, tokens int32) (rule.Ticket, clock.Instant, error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	ticket, now, decision := t.acquire(tokens)
	switch {
	case decision == rule.Pass:
		return ticket, now, nil
	case decision == rule.Wait && t.queue != nil:
		return t.wait(ctx, now, tokens)
	}
	return 0, now, t.refused
}

func (t *Tickets) wait(ctx context.Context, now clock.Instant, tokens int32) (rule.Ticket, clock.Instant, error) {
	woken := NewWaker()
	patience := rule.Patience{Since: now, Until: Deadline(ctx, t.clock, now), Wake: woken.Wake}
	waiter, ticket, decision := t.queue.Join(rule.Call{Now: now, Tokens: tokens}, patience)
	for decision == rule.Wait {
		var after time.Duration
		if ticket, after, decision = waiter.Poll(now); decision != rule.Wait {
			break
		}
		var err error
		if now, err = woken.Pause(ctx, t.clock, now, after); err != nil {
			waiter.Leave(now)
			return 0, now, err
		}
	}
	if decision != rule.Pass {
		return 0, now, t.refused
	}
	return ticket, now, nil
}

// GiveBack gives a ticket of so many tokens back, as though it had never been.
func (t *Tickets) GiveBack(ticket rule.Ticket, tokens int32) {
	t.limiter.GiveBack(t.clock.Now(), ticket, tokens)
}

// Done tells the limiter how a call ended; the present instant is its end.
func (t *Tickets) Done(ticket rule.Ticket, exit rule.Exit) {
	exit.Now = t.clock.Now()
	t.limiter.(rule.Finisher).Done(ticket, exit)
}

// Status returns that of the limiter.
func (t *Tickets) Status() rule.Status { return t.limiter.Status(t.clock.Now()) }

// RetryAfter returns how long it takes until a call of so many tokens passes.
func (t *Tickets) RetryAfter(tokens int32) time.Duration {
	return t.limiter.RetryAfter(rule.Call{Now: t.clock.Now(), Tokens: tokens})
}
