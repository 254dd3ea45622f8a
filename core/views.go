package core

import (
	"iter"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// ResourceView reads what an engine knows of one resource, a part at a time: [Engine.Snapshot] reads
// all of all resources, which is too much for whoever looks at ten thousand and needs little of each.
// Its methods are safe for concurrent use.
type ResourceView struct {
	Name string
	ID   ResourceID    // tells the resource from others
	At   clock.Instant // of the view

	engine   *Engine
	resource *resource
}

// ResourceID tells a resource from others, also from a later one of the same name. It can be compared.
type ResourceID struct{ stats *registry.Stats }

// Views yields all resources that the engine knows, in no order: those that rules name, and those that
// were called in the last minute; [rule.OtherResources] is among them if calls were counted there. What a view
// calls the last minute ends at the call of Views.
func (e *Engine) Views() iter.Seq[ResourceView] {
	return func(yield func(ResourceView) bool) {
		now := e.clock.Now()
		for _, r := range e.resources.All(now) {
			if r == e.resources.Overflow && r.Node.Calls() == 0 {
				continue
			}
			if !yield(e.viewOf((*resource)(r), now)) {
				return
			}
		}
	}
}

// View returns the resource of a name, false if the engine does not know it. It does not add the name.
func (e *Engine) View(name string) (ResourceView, bool) {
	r := e.resources.Table.Get(name)
	if name == rule.OtherResources {
		r = e.resources.Overflow
	}
	if r == nil || r.Evicted.Load() && name != rule.OtherResources {
		return ResourceView{}, false
	}
	return e.viewOf((*resource)(r), e.clock.Now()), true
}

func (e *Engine) viewOf(r *resource, now clock.Instant) ResourceView {
	return ResourceView{Name: r.Name, ID: ResourceID{r.Stats}, At: now, engine: e, resource: r}
}

// Sums returns the sums since the engine knows the resource, and what is under way now, without
// ResponseTimes.
func (v ResourceView) Sums() stat.Totals { return v.resource.Node.Sums() }

// Minute returns what happened in the last 60 seconds, oldest first. The last of them is the one of the
// instant of the view.
func (v ResourceView) Minute() []stat.Second { return v.resource.Node.Minute(v.At) }

// CallsOfMinute returns how many calls passed and were refused in these seconds together. It costs
// less.
func (v ResourceView) CallsOfMinute() (passed, refused uint64) {
	return v.resource.Node.CallsOfMinute(v.At)
}

// ResponseTimes returns the distribution of response times since the engine knows the resource.
func (v ResourceView) ResponseTimes() stat.Distribution { return v.resource.Node.ResponseTimes() }

// RuleView is a rule on a resource, without the state of its limiter.
type RuleView struct {
	rule.Key
	Shadow bool
	Off    bool // it is switched off here, see Engine.Switch

	Refused     uint64 // calls of the resource that the rule has refused
	WouldRefuse uint64 // calls that it would have refused while it was a shadow, or off
	Demoted     uint64 // calls that it gave the lowest priority, see [RuleSnapshot.Demoted]
	refusals    *leap.Refusals
	now         clock.Instant
}

// Minute returns how many calls the rule has refused in each of the seconds of [ResourceView.Minute].
// It is nil for all but the first four rules that have come to the resource since the engine knows it:
// of the others only the sum is kept.
func (v *RuleView) Minute() []uint64 { return v.refusals.Minute(v.now) }

// Rules returns the rules that guard the resource, in the order in which they are asked: shadow rules
// come last.
func (v ResourceView) Rules() []RuleView {
	p := v.resource.planNow()
	if p == nil || len(p.Rules) == 0 {
		return nil
	}
	views := make([]RuleView, len(p.Rules))
	for i := range p.Rules {
		of := &p.Rules[i]
		views[i] = RuleView{
			Key: of.Rule.Key(), Shadow: of.Rule.Target().Shadow, Off: of.Off, refusals: &of.State.Refusals.Tally.Refused, now: v.At,
			Refused: of.State.Refusals.Tally.Refused.Total(), WouldRefuse: of.State.Refusals.Tally.WouldRefuse.Load(),
			Demoted: of.State.Refusals.Tally.Demoted.Load(),
		}
	}
	return views
}

// Applied returns the same rules with the states of their limiters and the places where they stand. The
// attributes of calls are left out, as there is no call.
func (v ResourceView) Applied() []Applied {
	p := v.resource.planNow()
	if p == nil {
		return nil
	}
	applied := make([]Applied, len(p.Rules))
	for i := range p.Rules {
		applied[i] = Applied{RuleSnapshot: snapshotOf(&p.Rules[i], v.At)}
	}
	v.engine.locate(applied)
	return applied
}
