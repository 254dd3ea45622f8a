package rules

import (
	"time"

	"github.com/penstock-go/penstock/flow"
)

// flowRules describes flow rules. To let documents have one more field, add it
// to flow.Rule and to the list here.
func flowRules() section {
	return schema[flow.Rule]{
		kind:   KindFlow,
		rules:  func(s *Set) *[]flow.Rule { return &s.Flow },
		nameOf: func(r flow.Rule) string { return r.Name },
		fill:   flow.Rule.WithDefaults,
		judge:  flow.Rule.Validate,
		fields: fields[flow.Rule]{
			nameField("name", func(r *flow.Rule) *string { return &r.Name }),
			nameField("resource", func(r *flow.Rule) *string { return &r.Resource }).given("match"),
			nameField("match", func(r *flow.Rule) *string { return &r.Match }),
			invertedField("perResource", func(r *flow.Rule) *bool { return &r.Shared }).given("match"),
			numberField("limit", func(r *flow.Rule) *float64 { return &r.Limit }).
				required("is missing: write how many tokens may pass in a window, 0 to block all"),
			durationField("window", func(r *flow.Rule) *time.Duration { return &r.Window }).given("control", "algorithm"),
			choiceField("algorithm", func(r *flow.Rule) *flow.Algorithm { return &r.Algorithm },
				flow.SlidingWindow, flow.FixedWindow, flow.TokenBucket),
			wholeField("buckets", func(r *flow.Rule) *int { return &r.Buckets }).given("window", "control", "algorithm"),
			booleanField("strict", func(r *flow.Rule) *bool { return &r.Strict }).given("control", "algorithm"),
			choiceField("control", func(r *flow.Rule) *flow.Control { return &r.Control }, flow.Reject, flow.Throttle),
			durationField("maxWait", func(r *flow.Rule) *time.Duration { return &r.MaxWait }).given("control", "algorithm"),
			numberField("burst", func(r *flow.Rule) *float64 { return &r.Burst }).given("limit", "control", "algorithm", "overdraft"),
			booleanField("overdraft", func(r *flow.Rule) *bool { return &r.Overdraft }).given("control", "algorithm"),
			durationField("warmUp.period", func(r *flow.Rule) *time.Duration { return &r.WarmUp.Period }),
			numberField("warmUp.coldFactor", func(r *flow.Rule) *float64 { return &r.WarmUp.ColdFactor }),
			durationField("warmUp.step", func(r *flow.Rule) *time.Duration { return &r.WarmUp.Step }).given("control", "algorithm"),
			nameField("origin", func(r *flow.Rule) *string { return &r.Origin }),
			nameField("related", func(r *flow.Rule) *string { return &r.Related }).given("resource", "control", "algorithm"),
			booleanField("shadow", func(r *flow.Rule) *bool { return &r.Shadow }),
		},
	}
}
