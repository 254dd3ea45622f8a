package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// Snapshot is what an engine knows at one moment.
type Snapshot struct {
	At        clock.Instant
	Status    Status
	Rejected  uint64             // documents that were rejected so far
	Resources []ResourceSnapshot // by name
}

// ResourceSnapshot is what an engine knows of a resource.
type ResourceSnapshot struct {
	// Name of the resource; [Overflow] for those beyond [Config.MaxResources].
	Name string
	stat.Totals
	Refusals []Refusals     // by what refused; rules that are no longer in force are not among them
	Flow     []FlowSnapshot // of every rule that guards the resource, in the order in which they are asked
}

// Refusals tells how often a rule refused.
type Refusals struct {
	Kind  rules.Kind
	Rule  string
	Count uint64

	// WouldBlock is how many calls the rule would have refused while it was a
	// shadow.
	WouldBlock uint64
}

// FlowSnapshot is the state of a flow rule.
type FlowSnapshot struct {
	Rule    flow.Rule
	Ceiling float64 // in force, tokens per window

	// Remaining is how many calls of one token would pass if they came now, one after
	// the other, under a throttle or a token bucket by waiting as long as the rule lets
	// them. One call more would be refused.
	Remaining int64

	// Reset is how long it takes, if nobody else comes, until Remaining is more; 0 if
	// it never is, for it is at its most or nothing may pass at all. It is exact to the
	// nanosecond, for a window to the beginning of a bucket. Under a rule that warms up
	// it is 0 too if Remaining grows later than within a window, or a thousand turns
	// and steps of a throttle.
	Reset time.Duration
}

// Snapshot returns what the engine knows now. It slows no call but those that
// are just opening a bucket of a window.
func (e *Engine) Snapshot() Snapshot {
	now := e.clock.Now()
	s := Snapshot{At: now, Status: e.Status(), Rejected: e.rejections.Load()}
	for _, r := range e.resources.all(now) {
		if of := r.snapshot(now); of.Name != Overflow || of.Passed+of.Blocked+of.Waited+uint64(of.Waiting) > 0 {
			s.Resources = append(s.Resources, of)
		}
	}
	slices.SortFunc(s.Resources, func(a, b ResourceSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// Snapshot returns what the engine knows of the resource now.
func (r *Resource) Snapshot() ResourceSnapshot { return r.current().snapshot(r.engine.clock.Now()) }

// Minute returns what happened on the resource in the last 60 seconds, oldest
// first; the last of them is the present one.
func (r *Resource) Minute() []stat.Second { return r.current().node.Minute(r.engine.clock.Now()) }

func (r *resource) snapshot(now clock.Instant) ResourceSnapshot {
	s := ResourceSnapshot{Name: r.name, Totals: r.node.Totals()}
	if p := r.planNow(); p != nil {
		for i := range p.rules {
			if p.rules[i].rule.Type().Kind() == rules.KindFlow {
				s.Flow = append(s.Flow, p.rules[i].snapshot(now))
			}
			s.Refusals = append(s.Refusals, p.rules[i].hold.refusals.snapshot())
		}
	}
	return s
}

func (p *planned) snapshot(now clock.Instant) FlowSnapshot {
	quota := p.limiter.Status(now).Quota
	return FlowSnapshot{p.rule.Value().(flow.Rule), quota.Limit, quota.Remaining, quota.Reset}
}

func (r *refusals) snapshot() Refusals {
	return Refusals{
		Kind: r.key.Kind, Rule: r.key.Name, Count: r.tally.refused.Load(), WouldBlock: r.tally.wouldRefuse.Load(),
	}
}
