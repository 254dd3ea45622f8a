package sharing

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/sharing/leasedplaces"
	"github.com/penstock-go/penstock/internal/sharing/share"
	"github.com/penstock-go/penstock/internal/sharing/valueplaces"
)

// limits are all limits of an instance. They are looked at, and go over to an outage and back, in this order.
type limits struct {
	*exchange.Exchange
	budgets lease.Budgets
	places  leasedplaces.Set
	values  valueplaces.Set
	askers  ask.Askers
	shares  share.Shares
	groups  []*Group // guarded by Mu, as what follows

	uses   []fleet.Use // see usesOf
	usesAt clock.Instant
}

// Next implements Limits.
func (l *limits) Next(now clock.Instant) clock.Instant {
	return min(l.budgets.Next(), l.places.Next(), l.values.Next(now), l.askers.Next(now))
}

// Woken implements Limits.
func (l *limits) Woken(now clock.Instant) clock.Instant {
	return min(l.budgets.Woken(now), l.places.Woken(now))
}

// BeginOutages implements Limits.
func (l *limits) BeginOutages(now clock.Instant) {
	l.budgets.BeginOutages(now)
	l.places.BeginOutages(now, false)
	l.values.BeginOutages(now)
	l.askers.BeginOutages(now)
	l.shares.Lost(now)
}

// StayOut implements Limits.
func (l *limits) StayOut(now clock.Instant) { l.places.BeginOutages(now, true) }

// BackIsUp implements Limits.
func (l *limits) BackIsUp(now clock.Instant) {
	l.budgets.BackIsUp(now)
	l.places.BackIsUp(now)
	l.values.BackIsUp(now)
	l.askers.BackIsUp(now)
}

// Probe implements Limits.
func (l *limits) Probe(ask func(fleet.Operation, fleet.Terms)) {
	l.budgets.Probe(ask)
	l.places.Probe(ask)
	l.values.Probe(ask)
	l.askers.Probe(ask)
}

// Announce implements Limits. Without being announced, a share has no part.
func (l *limits) Announce(now clock.Instant) (uses []fleet.Use, withInstances bool) {
	others, shared := l.usesOf(now), l.shares.Uses(now)
	uses = slices.Concat(shared, others)
	return slices.Clip(uses[:min(len(uses), fleet.MaxUses)]), len(shared) > 0
}

// usesOf returns what is used of the limits that are not shared by demand, those with the
// greatest demand first. Probes do not count it anew.
func (l *limits) usesOf(now clock.Instant) []fleet.Use {
	if l.usesAt != 0 && now.Sub(l.usesAt) < exchange.AnnounceInterval/2 {
		return l.uses
	}
	uses := slices.Concat(l.budgets.Uses(now), l.askers.Uses(now), l.places.Uses(), l.values.Uses())
	for _, g := range l.groups {
		uses = append(uses, g.use(now))
	}
	uses = slices.DeleteFunc(uses, func(u fleet.Use) bool { return u.Demand == 0 && u.Passed == 0 })
	slices.SortFunc(uses, func(a, b fleet.Use) int {
		return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Key, b.Key))
	})
	l.uses, l.usesAt = slices.Clone(uses[:min(len(uses), fleet.MaxUses)]), now
	return l.uses
}

// Divide implements Limits.
func (l *limits) Divide(now clock.Instant, known fleet.Fleet) clock.Instant {
	return l.shares.Divide(now, known)
}

// Undivided implements Limits.
func (l *limits) Undivided(now clock.Instant) { l.shares.Lost(now) }

// status tells how all limits are, in no order.
func (l *limits) status(now clock.Instant) []fleet.LimitStatus {
	all := slices.Concat(l.budgets.Status(now), l.askers.Status(now), l.places.Status(), l.values.Status(), l.shares.Status(now))
	for _, g := range l.groups {
		all = append(all, g.status(now))
	}
	return all
}
