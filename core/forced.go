package core

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/sleep"
)

// Order says who forces a state, why, and for how long. The zero value leaves all three open.
type Order struct {
	// By is who forces it, and Reason why: what others will want to know. Control characters are
	// replaced by spaces, and each is cut after 256 bytes.
	By, Reason string

	// For is how long the state stays forced: it then ends by itself. It ends when so much time has been
	// measured, or by the wall clock, whichever is first: a machine that was suspended meanwhile, or whose
	// wall clock is set, does not prolong it. Defaults to until it is released.
	For time.Duration
}

// Forced is a state that an operator has forced, see [Engine.Control] and [Engine.Switch].
type Forced struct {
	Scope
	State      string
	By, Reason string
	Since      clock.Instant
	Until      time.Time // by the wall clock; the zero time if it does not end by itself
}

// ForcedChange is the beginning or the end of a state that an operator forces.
type ForcedChange struct {
	At clock.Instant

	// Forced is the state from now on; its State is "" once nothing is forced any more. By and Reason are
	// those of who has changed it, or of the state that has come to its end.
	Forced

	From   string // the state that was forced before; "" for none
	Switch bool   // it is a switch, see Engine.Switch; else it was set by Engine.Control or Engine.ControlKind
	Ended  bool   // the time of the state is over
}

// forcedCheck is how often it is looked at the least whether the time of forced states is over: the wall
// clock may be set, and a suspended machine may resume.
const forcedCheck = time.Minute

// forcedLines is how many lines a second are logged of what is forced.
const forcedLines = 100

// newForced returns the state that an order forces on a scope at the present instant.
func (e *Engine) newForced(scope Scope, state string, orders []Order) (*inforce.Forced, error) {
	var order Order
	switch len(orders) {
	case 0:
	case 1:
		order = orders[0]
	default:
		return nil, fmt.Errorf("core: %d orders are given: give one", len(orders))
	}
	if order.For < 0 {
		return nil, fmt.Errorf("core: Order.For is %v: leave it out to force the state until it is released", order.For)
	}
	f := &inforce.Forced{Scope: inforce.Scope(scope), State: state, By: cleaned(order.By), Reason: cleaned(order.Reason), Since: e.clock.Now()}
	if state != "" && order.For > 0 {
		wall := f.Since.Time().Add(-e.clock.Until(f.Since.Time())) // to the nanosecond, unlike clock.TimeOf
		f.Until = wall.Add(order.For)
		if f.Ends = f.Since.Add(order.For); f.Ends < f.Since {
			f.Ends = math.MaxInt64
		}
	}
	return f, nil
}

// shown returns a forced state as callers get it: with the end by the wall clock as it is at present.
func shown(f *inforce.Forced, c clock.Clock) Forced {
	of := Forced{Scope: Scope(f.Scope), State: f.State, By: f.By, Reason: f.Reason, Since: f.Since, Until: f.Until}
	if f.Until.IsZero() {
		return of
	}
	if ends := clock.TimeOf(c, f.Ends); f.Ends < math.MaxInt64 && f.Until.Sub(ends) >= time.Second { // the wall clock was set back
		of.Until = ends
	}
	return of
}

// cleaned returns a text of an operator as it is kept: without what could write over other texts where it
// is shown, and not too long.
func cleaned(text string) string {
	if len(text) > lines.MaxBytes {
		text = lines.Cut(text)
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "")))
}

// forcedChange returns what becomes of a forced state, either of which may be nil.
func (e *Engine) forcedChange(before, after *inforce.Forced, isSwitch bool) ForcedChange {
	return ForcedChange{At: e.clock.Now(), Forced: shown(after, e.clock), From: before.StateOf(), Switch: isSwitch}
}

// endOf returns that the time of a state is over.
func (e *Engine) endOf(f *inforce.Forced, isSwitch bool) ForcedChange {
	c := ForcedChange{At: e.clock.Now(), Forced: shown(f, e.clock), From: f.State, Switch: isSwitch, Ended: true}
	c.State, c.Until = "", time.Time{}
	return c
}

// noteForced adds the event of a change. It is called with rules.mu held, so that events are in the order
// of what they tell of.
func (e *Engine) noteForced(c *ForcedChange) {
	event := Event{
		At: c.At, Type: eventForced, Kind: c.Kind, Rule: c.Rule, Resource: c.Resource, From: c.From, To: c.State,
		By: c.By, Text: c.Reason, Until: c.Until, Ended: c.Ended,
	}
	if c.Switch {
		event.Type = eventSwitch
	}
	e.events.add(event)
}

// reportForced logs a change, unless there were many in this second, and reports it to the observer. No
// lock is held.
func (e *Engine) reportForced(c *ForcedChange) {
	if skipped, ok := e.forcedLines.Take(c.At, forcedLines, e.clock.Now); ok {
		e.logForced(c, skipped)
	}
	if e.observer.Forced != nil {
		e.observer.Forced(*c)
	}
}

func (e *Engine) logForced(c *ForcedChange, skipped uint64) {
	facts := []any{slog.String("scope", c.String()), slog.String("state", cmp.Or(c.State, "released"))}
	for _, fact := range []struct{ key, text string }{
		{"kind", string(c.Kind)}, {"rule", c.Rule}, {"resource", c.Resource}, {"before", c.From}, {"by", c.By}, {"reason", c.Reason},
	} {
		if fact.text != "" {
			facts = append(facts, slog.String(fact.key, lines.Cut(fact.text)))
		}
	}
	if !c.Until.IsZero() {
		facts = append(facts, slog.Time("until", c.Until))
	}
	if skipped > 0 {
		facts = append(facts, slog.Uint64("linesSkipped", skipped))
	}
	switch {
	case c.Ended:
		e.log.Warn("penstock: the time of a forced state is over", facts...)
	case c.Switch:
		e.log.Warn("penstock: an operator has switched rules", facts...)
	default:
		e.log.Warn("penstock: an operator has forced the state of rules", facts...)
	}
}

// keepForcedTime has a goroutine end the states whose time is over, if there is none already. The caller
// holds rules.mu and has seen that the engine is open.
func (e *Engine) keepForcedTime(f *inforce.Forced) {
	switch {
	case f == nil || f.Until.IsZero():
	case !e.rules.timesForced:
		e.rules.timesForced = true
		e.keepRunning(e.endForcedInTime)
	default:
		e.sleepers.WakeAll() // the goroutine, and calls that wait, which does no harm
	}
}

func (e *Engine) endForcedInTime() {
	for s := sleep.New(); ; {
		version, now := e.sleepers.Version(), e.clock.Now() // the clock may go on before the timer is set
		left, goesOn := e.endForced()
		if !goesOn || e.sleepers.Pause(context.Background(), now, min(left, forcedCheck), s, version) != nil {
			return
		}
	}
}

// endForced ends the states whose time is over. It returns how long the next one still lasts; false if
// there is none.
func (e *Engine) endForced() (left time.Duration, goesOn bool) {
	var changes []ForcedChange
	var limiters limiterChanges
	defer func() {
		for i := range changes { // the last one first: each is reported, whatever becomes of the others
			defer e.reportForced(&changes[len(changes)-1-i])
		}
		limiters.finish(e.clock.Now())
	}()
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return 0, false
	}
	changes, limiters = e.endSwitches()
	for _, of := range e.rules.forcedStates() {
		if f := of.Load(); f != nil {
			if _, over := f.IsOver(e.clock); over {
				of.Store(nil)
				e.resources.Forcings.Add(1)
				changes = append(changes, e.endOf(f, false))
				limiters.restored = append(limiters.restored, e.forcedRules(f.Concerns)...)
			}
		}
	}
	for i := range changes {
		e.noteForced(&changes[i])
	}
	left, e.rules.timesForced = e.rules.nextForcedEnd(e.clock)
	return left, e.rules.timesForced
}

// forcedStates returns what is forced by Control and ControlKind. The caller holds s.mu.
func (s *ruleStore) forcedStates() (all []*inforce.ForcedState) {
	for _, of := range s.forced {
		all = append(all, of)
	}
	for _, a := range s.all() {
		if a.Forced.Load() != nil {
			all = append(all, &a.Forced)
		}
	}
	return all
}

// forcedList returns the same in order.
func (s *ruleStore) forcedList(c clock.Clock) (list []Forced) {
	for _, of := range s.forcedStates() {
		if f := of.Load(); f != nil {
			list = append(list, shown(f, c))
		}
	}
	slices.SortFunc(list, func(a, b Forced) int { return a.compare(b.Scope) })
	return list
}

// nextForcedEnd returns how long it is until the next forced state ends; false if none does. The caller
// holds s.mu.
func (s *ruleStore) nextForcedEnd(c clock.Clock) (left time.Duration, some bool) {
	note := func(f *inforce.Forced) {
		if d, _ := f.IsOver(c); f != nil && !f.Until.IsZero() && (!some || d < left) {
			left, some = d, true
		}
	}
	for _, of := range s.forcedStates() {
		note(of.Load())
	}
	for _, f := range s.switches.All() {
		note(f)
	}
	return max(left, time.Millisecond), some
}
