package rules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// flowRules describes flow rules. To let documents have one more field, add it
// to flow.Rule and to the list here.
func flowRules() section {
	return schema[flow.Rule]{
		kind:     KindFlow,
		rules:    func(s *Set) *[]flow.Rule { return &s.Flow },
		nameOf:   func(r flow.Rule) string { return r.Name },
		fill:     flow.Rule.WithDefaults,
		judge:    flow.Rule.Validate,
		examples: flowExamples,
		fields: fields[flow.Rule]{
			nameField("name", func(r *flow.Rule) *string { return &r.Name }).
				says("identifies the rule in errors, logs and metrics, and over reloads").otherwise("the resource, or the pattern"),
			nameField("resource", func(r *flow.Rule) *string { return &r.Resource }).given("match").
				says("the exact name of the guarded resource").otherwise("match instead"),
			nameField("match", func(r *flow.Rule) *string { return &r.Match }).
				says("instead of a resource: a pattern of names, a glob or ~ and a regular expression").otherwise("resource instead"),
			invertedField("perResource", func(r *flow.Rule) *bool { return &r.Shared }).given("match").
				says("false: all resources that match share one ceiling"),
			numberField("limit", func(r *flow.Rule) *float64 { return &r.Limit }).
				required("is missing: write how many tokens may pass in a window, 0 to block all").
				says("tokens per window, a call takes one; 0 blocks all, 0.5 is one in two windows"),
			durationField("window", func(r *flow.Rule) *time.Duration { return &r.Window }).given("algorithm").
				says("the time that the limit speaks of"),
			choiceField("algorithm", func(r *flow.Rule) *flow.Algorithm { return &r.Algorithm },
				flow.SlidingWindow, flow.FixedWindow, flow.TokenBucket, flow.Throttle).accepts("leakyBucket", string(flow.Throttle)).
				says("slidingWindow, fixedWindow, tokenBucket, or throttle, which spaces calls evenly"),
			wholeField("buckets", func(r *flow.Rule) *int { return &r.Buckets }).given("window", "algorithm").
				says("the parts of a slidingWindow"),
			booleanField("strict", func(r *flow.Rule) *bool { return &r.Strict }).given("algorithm").
				says("slidingWindow: the limit holds over every interval, aligned to buckets or not"),
			durationField("maxWait", func(r *flow.Rule) *time.Duration { return &r.MaxWait }).given("algorithm").
				says("throttle and tokenBucket: the longest that a call may wait"),
			numberField("burst", func(r *flow.Rule) *float64 { return &r.Burst }).given("limit", "algorithm", "overdraft").
				says("tokenBucket: how many tokens it holds, and has at the start").otherwise("the limit, at least 1"),
			booleanField("overdraft", func(r *flow.Rule) *bool { return &r.Overdraft }).given("algorithm").
				says("tokenBucket: a call goes when nothing is owed, whatever it takes; those behind it pay"),
			durationField("warmUp.period", func(r *flow.Rule) *time.Duration { return &r.WarmUp.Period }).
				says("how long a cold resource takes to become warm under full load").otherwise("off"),
			numberField("warmUp.coldFactor", func(r *flow.Rule) *float64 { return &r.WarmUp.ColdFactor }).
				says("how much lower the ceiling is at first"),
			durationField("warmUp.step", func(r *flow.Rule) *time.Duration { return &r.WarmUp.Step }).given("algorithm").
				says("how often the ceiling is computed anew; not for tokenBucket"),
			nameField("origin", func(r *flow.Rule) *string { return &r.Origin }).
				says("only calls of this caller; other: of callers that no rule names").otherwise("all calls"),
			nameField("related", func(r *flow.Rule) *string { return &r.Related }).given("resource", "algorithm").
				says("windows: count the passes of that resource instead").otherwise("none"),
			booleanField("shadow", func(r *flow.Rule) *bool { return &r.Shadow }).
				says("decide and count, but let every call through"),
		},
		formerFields: []formerField[flow.Rule]{{path: "control", now: "algorithm", read: readControl}},
	}
}

// readControl reads the field "control" of older documents, where a throttle was
// "control: throttle" without an algorithm.
func readControl(rule *flow.Rule, n node) string {
	const reject, throttle = "reject", string(flow.Throttle)
	control, fault := readChoice(n, []string{reject, throttle})
	algorithm := cmp.Or(rule.Algorithm, flow.SlidingWindow)
	switch {
	case fault != "":
		return fault
	case control == "":
		return "is empty: remove the field"
	case control == reject && algorithm == flow.Throttle:
		return fmt.Sprintf("is %q, but algorithm is %q: remove control", control, algorithm)
	case control == throttle && algorithm != flow.SlidingWindow && algorithm != flow.Throttle:
		return fmt.Sprintf("is %q, but algorithm is %q: remove control, or set algorithm to %q", control, algorithm, throttle)
	case control == throttle:
		rule.Algorithm = flow.Throttle
	}
	return ""
}

// flowExamples are rules that have every field between them.
func flowExamples() []example[flow.Rule] {
	return []example[flow.Rule]{{
		about:  "A ceiling: what comes beyond it is refused.",
		rule:   flow.Rule{Name: "create-qps", Resource: "orders:create", Limit: 1000},
		fields: []string{"name", "resource", "limit", "window", "algorithm", "buckets", "strict", "shadow"},
	}, {
		about: "Even spacing: calls wait for their turn. A cold cache warms up first.",
		rule: flow.Rule{
			Resource: "reports:render", Limit: 5, Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond,
			WarmUp: flow.WarmUp{Period: 10 * time.Second},
		},
		fields: []string{"resource", "limit", "algorithm", "maxWait", "warmUp.period", "warmUp.coldFactor", "warmUp.step"},
	}, {
		about:  "A bucket for each user, and for one kind of callers.",
		rule:   flow.Rule{Match: "user:*", Limit: 5, Algorithm: flow.TokenBucket, Burst: 20, Origin: "mobile"},
		fields: []string{"match", "perResource", "limit", "algorithm", "burst", "overdraft", "origin"},
	}, {
		about:  "Reads give way to writes.",
		rule:   flow.Rule{Name: "reads-yield", Resource: "orders:read", Limit: 50, Related: "orders:write"},
		fields: []string{"name", "resource", "limit", "related"},
	}}
}
