package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// fleetRows are the rows of the limits that instances share while they are made.
type fleetRows struct {
	limits    []*sharedLimit // by kind, rule and resource
	instances int
	rows      []FleetSecond // by second, then in the order of limits
	backend   []BackendSecond
}

// sharedLimit is a limit that the instances share.
type sharedLimit struct {
	index     int
	rule      rule.Key
	resource  string
	perSecond *float64
	parts     []int // tokens that passed in the present second, by instance
}

// sharedLimitOf returns the limit, shared by the fleet, that a rule is for a resource, and
// whether there is one.
func sharedLimitOf(of *core.Applied, resource string) (sharedLimit, bool) {
	target := of.Rule.Target()
	if !of.Rule.Fleet() || target.Shadow {
		return sharedLimit{}, false
	}
	l := sharedLimit{rule: of.Rule.Key(), resource: resource}
	if target.Shared {
		l.resource = target.Match
	}
	if of.Quota != nil && !of.Quota.Prepaid && len(of.Rule.Attributes()) == 0 {
		l.perSecond = pointerTo(of.Quota.Limit / of.Quota.Window.Seconds())
	}
	return l, true
}

// add returns the limit among those known that is the same, after it has added it if there
// is none.
func (f *fleetRows) add(l sharedLimit) *sharedLimit {
	for _, known := range f.limits {
		if known.rule == l.rule && known.resource == l.resource {
			return known
		}
	}
	l.parts = make([]int, f.instances)
	f.limits = append(f.limits, &l)
	return &l
}

// complete puts the limits in order, when all are known, and makes room for so many seconds.
// The error is [Faults].
func (f *fleetRows) complete(seconds int) error {
	parts := 1
	if f.instances <= maxParts {
		parts = f.instances
	}
	var faults Faults
	faults.check(seconds*len(f.limits)*parts <= maxRows, wholeLoad, "duration",
		"is %d s: limits of the fleet (%d) on %d instances make more than %d numbers in it; shorten it",
		seconds, len(f.limits), f.instances, maxRows)
	if len(faults) > 0 {
		return faults
	}
	slices.SortFunc(f.limits, func(a, b *sharedLimit) int {
		return cmp.Or(cmp.Compare(a.rule.Kind, b.rule.Kind), cmp.Compare(a.rule.Name, b.rule.Name), cmp.Compare(a.resource, b.resource))
	})
	for second := range seconds {
		f.backend = append(f.backend, BackendSecond{T: float64(second)})
		for i, l := range f.limits {
			l.index = i
			f.rows = append(f.rows, FleetSecond{
				T: float64(second), Rule: l.rule.Name, Kind: string(l.rule.Kind), Resource: l.resource, Limit: l.perSecond,
			})
		}
	}
	return nil
}

// at returns the row of a limit that a time falls in, nil after the last.
func (f *fleetRows) at(t time.Duration, l *sharedLimit) *FleetSecond {
	i := int(t/time.Second)*len(f.limits) + l.index
	if i >= len(f.rows) {
		return nil
	}
	return &f.rows[i]
}

// pass counts the tokens of a call that is let through at t.
func (f *fleetRows) pass(t time.Duration, c *call) {
	for _, l := range c.stream.shared {
		if row := f.at(t, l); row != nil {
			row.Passed += c.stream.tokens
			l.parts[c.instance.number] += c.stream.tokens
		}
	}
}

// refuse counts the tokens of a call that a rule has refused.
func (f *fleetRows) refuse(c *call, by rule.Key) {
	for _, l := range c.stream.shared {
		if row := f.at(c.arrived, l); row != nil && l.rule == by {
			row.Refused += c.stream.tokens
		}
	}
}

// endSecond completes the rows of the second that ends at t, when so many instances are
// connected.
func (f *fleetRows) endSecond(t time.Duration, connected int) {
	for _, l := range f.limits {
		row := f.at(t-1, l)
		row.Connected = connected
		row.Least, row.Most = slices.Min(l.parts), slices.Max(l.parts)
		if len(l.parts) <= maxParts {
			row.Instances = slices.Clone(l.parts)
		}
		clear(l.parts)
	}
}

// sent counts requests that are sent at t, if that is within the duration.
func (f *fleetRows) sent(t time.Duration, requests int, answered bool) {
	i := int(t / time.Second)
	if i >= len(f.backend) {
		return
	}
	row := &f.backend[i]
	row.Requests += requests
	row.RoundTrips++
	if !answered {
		row.Unanswered++
	}
}
