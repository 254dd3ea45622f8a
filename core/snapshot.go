package core

import (
	"cmp"
	"math"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// Snapshot is what an engine knows at one moment.
type Snapshot struct {
	At        clock.Instant
	Status    Status
	Rejected  uint64             // documents, and sets of owners, that were rejected so far
	Resources []ResourceSnapshot // by name

	// Forgotten is what was counted on resources that the engine has forgotten: those that
	// were not called for a minute and that no rule names. It has no ResponseTimes.
	Forgotten stat.Totals
}

// ResourceSnapshot is what an engine knows of a resource.
type ResourceSnapshot struct {
	// Name of the resource; [Overflow] for those beyond [Config.MaxResources].
	Name string
	stat.Totals
	Rules []RuleSnapshot // every rule in force that guards the resource, in the order in which they are asked

	stats *resourceStats // tells the resource from an earlier one of the same name
}

// Named returns whether a rule in force is for this resource alone and names it. Calls choose the
// names that match a pattern, but rules choose these, so there are only so many.
func (s *ResourceSnapshot) Named() bool {
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

// Snapshot returns what the engine knows now. It slows no call but those that
// are just opening a bucket of a window.
func (e *Engine) Snapshot() Snapshot {
	now := e.clock.Now()
	s := Snapshot{At: now, Status: e.Status(), Rejected: e.rejections.Load()}
	all, forgotten := e.resources.allAndForgotten(now)
	s.Forgotten = forgotten
	slices.SortFunc(all, func(a, b *resource) int { return cmp.Compare(a.Name, b.Name) })
	s.Resources = make([]ResourceSnapshot, 0, len(all))
	for _, r := range all {
		if of := r.snapshot(now); of.Name != Overflow || of.Passed+of.Blocked+of.Waited+uint64(of.Waiting) > 0 {
			s.Resources = append(s.Resources, of)
		}
	}
	return s
}

// Snapshot returns what the engine knows of the resource now.
func (r *Resource) Snapshot() ResourceSnapshot { return r.current().snapshot(r.engine.clock.Now()) }

// Minute returns what happened on the resource in the last 60 seconds, oldest
// first; the last of them is the present one.
func (r *Resource) Minute() []stat.Second { return r.current().node.Minute(r.engine.clock.Now()) }

func (r *resource) snapshot(now clock.Instant) ResourceSnapshot {
	s := ResourceSnapshot{Name: r.Name, Totals: r.node.Totals(), stats: r.resourceStats}
	if p := r.planNow(); p != nil && len(p.rules) > 0 {
		s.Rules = make([]RuleSnapshot, 0, len(p.rules))
		for i := range p.rules {
			s.Rules = append(s.Rules, p.rules[i].snapshot(now))
		}
	}
	return s
}

func (p *planned) snapshot(now clock.Instant) RuleSnapshot {
	status := p.limiter.Status(now)
	if told, count := len(status.Gauges), len(p.rule.Type().Gauges()); told < count {
		status.Gauges = append(make([]float64, 0, count), status.Gauges...)
		for range count - told {
			status.Gauges = append(status.Gauges, math.NaN())
		}
	}
	s := p.identity()
	s.Status, s.Transitions = status, p.state.transitions.snapshot()
	return s
}

// identity returns a snapshot without the state of the limiter, which takes long to read if that
// has a large table.
func (p *planned) identity() RuleSnapshot {
	key := p.rule.Key()
	return RuleSnapshot{
		Kind: key.Kind, Name: key.Name, Shadow: p.rule.Target().Shadow, Off: p.off, Rule: p.rule,
		Blocked: p.state.tally.refused.Total(), WouldBlock: p.state.tally.wouldRefuse.Load(),
		Demoted: p.state.tally.demoted.Load(),
	}
}
