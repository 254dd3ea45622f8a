package isolation

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Kind returns isolation as a kind of rule, which documents describe in a list
// "isolation".
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind:       "isolation",
		Phase:      rule.PhaseConcurrency,
		Reason:     rule.Overloaded,
		Common:     common,
		Fields:     fields(),
		Examples:   examples(),
		Defaults:   withDefaults,
		Validate:   validate,
		Attributes: func(r *Rule) []string { return slices.Collect(r.FairBy.All()) },
		New:        newLimiter,
		Adopt:      adopt,
		Gauges:     gauges(),
		Fleet:      isOfFleet,
		Places:     isOfFleet,
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared,
		Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

func fields() []rule.Field[Rule] {
	own := []rule.Field[Rule]{
		rule.FieldOf("limit", func(r *Rule) *int { return &r.Limit }).
			Required("is missing: write how many calls may be under way at once, 0 to block all").
			Says("calls under way at once; 0 blocks all"),
		rule.FieldOf("maxWait", func(r *Rule) *time.Duration { return &r.MaxWait }).
			Says("the longest that a call may wait for a place").Otherwise("no waiting"),
		rule.FieldOf("maxQueue", func(r *Rule) *int { return &r.MaxQueue }).Given("maxWait").
			Says("how many calls may wait; only with maxWait"),
		rule.ChoiceField("order", func(r *Rule) *Order { return &r.Order }, FIFO, LIFO).Given("maxWait").
			Says("which waiting call of a priority gets the next place: fifo, the oldest, or lifo, the newest; only with maxWait"),
		rule.FieldOf("fairBy", func(r *Rule) *rule.Strings { return &r.FairBy }).Given("maxWait", "order").
			Says("the attribute of calls that tells tenants apart, or a list of several: each tenant gets its share of the places, whoever else waits; only with maxWait").Otherwise("no shares"),
		rule.FieldOf("weights", func(r *Rule) *rule.NumberMap { return &r.Weights }).Given("fairBy").
			Says("tenants that get more or less than others, whose weight is 1; only with fairBy").Otherwise("all have 1"),
		rule.ChoiceField("weightBy", func(r *Rule) *WeightBy { return &r.WeightBy }, ByTime, ByCalls).Given("fairBy").
			Says("what tenants get shares of: time, for which their calls have places, or calls; only with fairBy"),
		rule.ChoiceField("newcomers", func(r *Rule) *rule.Newcomers { return &r.Newcomers }, rule.NewcomersHalf, rule.NewcomersEqual).Given("fairBy", "maxQueue").
			Says("what tenants get together that are not known, while many of them wait: half, or equal to take them for known; only with fairBy").
			Otherwise("half from maxQueue: 256 on"),
		rule.ChoiceField("mask", func(r *Rule) *rule.Mask { return &r.Mask }, rule.MaskHash).Given("fairBy").
			Says("hash: status shows a hash in place of each tenant; only with fairBy").Otherwise("tenants are shown"),
		rule.FieldOf("maxAge", func(r *Rule) *time.Duration { return &r.MaxAge }).
			Says("how long a call may hold its place: after it the place counts as given back").Otherwise("until the call ends"),
	}
	return append(own, fleetFields()...)
}

func examples() []rule.Example[Rule] {
	return []rule.Example[Rule]{{
		About:  "At most 10 at once: up to 100 calls wait for a place, not longer than 2 s. A place that is held for 5 min is free again.",
		Rule:   Rule{Name: "render-pool", Resource: "reports:render", Limit: 10, MaxWait: 2 * time.Second, MaxQueue: 100, MaxAge: 5 * time.Minute},
		Fields: []string{"name", "resource", "limit", "maxWait", "maxQueue", "order", "maxAge", "shadow"},
	}, {
		About: "Who calls too much waits behind himself, and not in front of all others; gold gets twice as much as another tenant.",
		Rule: Rule{
			Name: "search-pool", Resource: "search", Limit: 20, MaxWait: time.Second, FairBy: rule.StringsOf("tenant"),
			Weights: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("gold"), Value: 2}), Mask: rule.MaskHash,
		},
		Fields: []string{"name", "resource", "limit", "maxWait", "fairBy", "weights", "weightBy", "newcomers", "mask"},
	}, {
		About:  "All exports of one caller together.",
		Rule:   Rule{Match: "export:*", Except: rule.StringsOf("export:small"), Shared: true, Limit: 3, Origin: "mobile"},
		Fields: []string{"match", "except", "perResource", "limit", "origin"},
	}, {
		About: "At most 40 at once in all instances of the service together; while the backend is away, each goes on with the places that it has.",
		Rule: Rule{
			Name: "database", Resource: "orders:query", Limit: 40, MaxWait: time.Second, Scope: rule.ScopeFleet,
		},
		Fields: []string{"name", "resource", "limit", "maxWait", "scope", "fleet.mode", "fleet.onOutage"},
	}}
}

// gauges describes what status returns, in the same order.
func gauges() []rule.Gauge {
	return []rule.Gauge{
		{Name: "in_flight", Help: "Calls under way that have a place."},
		{Name: "waiting", Help: "Calls that wait for a place."},
		{Name: "highest", Help: "The highest number of calls under way in this minute of the clock and the one before."},
		{Name: "limit", Help: "How many calls may be under way at once."},
		{Name: "oldest_seconds", Help: "How long the oldest call under way has had its place, in seconds, at most."},
		{Name: "expired", Help: "Places that were given back after maxAge although their calls had not ended.", Counter: true},
		{Name: "tenants_waiting", Help: "Tenants that have calls which wait for a place, of a rule with fairBy."},
		{Name: "longest_waiting", Help: "The most calls of one tenant that wait for a place, of a rule with fairBy."},
		{Name: "newcomers_waiting", Help: "Tenants that are not known and have calls which wait for a place, of a rule with newcomers."},
		{Name: "held", Help: "Places of the whole fleet that this instance has leased, of a rule with scope fleet."},
		{Name: "wanted", Help: "Places that the calls of this instance need, of a rule with scope fleet."},
		{Name: "target", Help: "Places that this instance should have beside the others, of a rule with scope fleet."},
		{Name: "instances", Help: "Instances that have places or want some, of a rule with scope fleet."},
	}
}
