package core

import (
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// ResourceSnapshot is what an engine knows of a resource.
type ResourceSnapshot struct {
	// Name of the resource; [rule.OtherResources] for those beyond [Config.MaxResources].
	Name string
	stat.Totals
	Rules []RuleSnapshot // every rule in force that guards the resource, in the order in which they are asked

	stats *registry.Stats // tells the resource from an earlier one of the same name
}

// named returns whether a rule in force is for this resource alone and names it. Calls choose the
// names that match a pattern, but rules choose these, so there are only so many.
func (s *ResourceSnapshot) named() bool {
	for i := range s.Rules {
		if s.Rules[i].Rule.Target().Resource != "" {
			return true
		}
	}
	return false
}

// RuleSnapshot is the state of a rule on a resource.
type RuleSnapshot struct {
	Kind   rule.Kind
	Name   string
	Shadow bool
	Off    bool      // it is switched off here, see Engine.Switch
	Rule   rule.Rule // what it says; Rule.Value is that of its kind

	// Status is that of the limiter. Rules that several resources share have one.
	rule.Status

	// Value is what the rule has found in a call that is asked about, if it has a limit for each
	// value of an attribute: the Quota is that of this value. Nothing otherwise.
	Value rule.Attribute

	Blocked    uint64 // calls of the resource that the rule refused
	WouldBlock uint64 // calls that it would have refused while it was a shadow, or off
	Demoted    uint64 // calls that it gave the lowest priority in place of refusing them; as a shadow, or off, that it would have

	// Transitions counts the changes of the limiter's state, for kinds that have
	// states; in no order.
	Transitions []Transition
}

// Transition is a change from one state to another, and how often that happened.
type Transition struct {
	From, To string
	Count    uint64
}

func (r *resource) snapshot(now clock.Instant) ResourceSnapshot {
	s := ResourceSnapshot{Name: r.Name, Totals: r.Node.Totals(), stats: r.Stats}
	if p := r.planNow(); p != nil && len(p.Rules) > 0 {
		s.Rules = make([]RuleSnapshot, 0, len(p.Rules))
		for i := range p.Rules {
			s.Rules = append(s.Rules, snapshotOf(&p.Rules[i], now))
		}
	}
	return s
}

func snapshotOf(p *inforce.Planned, now clock.Instant) RuleSnapshot {
	s := identityOf(p)
	s.Status = statusOf(p, now)
	for _, t := range p.State.Transitions().Snapshot() {
		s.Transitions = append(s.Transitions, Transition(t))
	}
	return s
}

// statusOf returns the status of the limiter, with a gauge for each of the kind.
func statusOf(p *inforce.Planned, now clock.Instant) rule.Status {
	status := p.Limiter.Status(now)
	if told, count := len(status.Gauges), len(p.Rule.Type().Gauges()); told < count {
		status.Gauges = append(make([]float64, 0, count), status.Gauges...)
		for range count - told {
			status.Gauges = append(status.Gauges, math.NaN())
		}
	}
	return status
}

// identityOf returns a snapshot without the state of the limiter, which takes long to read if that
// has a large table.
func identityOf(p *inforce.Planned) RuleSnapshot {
	s := namedSnapshot(p)
	s.Blocked, s.WouldBlock = p.State.Refusals.Tally.Refused.Total(), p.State.Refusals.Tally.WouldRefuse.Load()
	s.Demoted = p.State.Refusals.Tally.Demoted.Load()
	return s
}

// namedSnapshot returns a snapshot that has no counts either.
func namedSnapshot(p *inforce.Planned) RuleSnapshot {
	key := p.Rule.Key()
	return RuleSnapshot{Kind: key.Kind, Name: key.Name, Shadow: p.Rule.Target().Shadow, Off: p.Off, Rule: p.Rule}
}
