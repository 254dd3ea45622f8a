package core_test

import (
	"cmp"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

var (
	modelNames   = []string{"a", "b", "c:1", "c:2", "c:3", "d:1", "d:2"}
	modelRules   = []string{"r0", "r1", "r2", "r3", "r4"}
	modelOrigins = []string{"", "mobile", "web", "tv", rule.OtherOrigins}
)

// drawName returns a name, mostly one of a few, so that rules meet on it.
func drawName(t *rapid.T, label string) string {
	return rapid.SampledFrom(append([]string{"a", "a", "a", "a", "c:1", "c:1", "c:1"}, modelNames...)).Draw(t, label)
}

// drawRule returns a sound rule of any kind, with its defaults.
func drawRule(t *rapid.T, name string) flow.Rule {
	r := flow.Rule{Name: name, Limit: rapid.SampledFrom([]float64{2, 1, 5, 3, 0.5, 2.5, 10, 0}).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "exact") {
		r.Resource = drawName(t, "resource")
	} else {
		r.Match = rapid.SampledFrom([]string{"c:*", "*", "~^[cd]:1$", "d:?", "[!c]*"}).Draw(t, "match")
		r.Shared = rapid.Bool().Draw(t, "shared")
	}
	r.Window = rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 100 * time.Millisecond, 2 * time.Minute}).Draw(t, "window")
	drawManner(t, &r)
	if rapid.IntRange(0, 4).Draw(t, "warm") == 4 && !r.Overdraft {
		r.Burst = 0
		r.WarmUp = flow.WarmUp{Period: rapid.SampledFrom([]time.Duration{2 * time.Second, 20 * time.Second}).Draw(t, "period")}
	}
	r.Origin = rapid.SampledFrom([]string{"", "", "", "mobile", "web", rule.OtherOrigins}).Draw(t, "origin")
	r.Shadow = rapid.IntRange(0, 3).Draw(t, "shadow") == 3
	return flow.Kind().WithDefaults(r)
}

// drawManner draws how a rule counts.
func drawManner(t *rapid.T, r *flow.Rule) {
	wait := rapid.SampledFrom([]time.Duration{5 * time.Second, 500 * time.Millisecond, 0}).Draw(t, "maxWait")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 2, 3:
		r.Buckets = rapid.SampledFrom([]int{1, 2, 10}).Draw(t, "buckets")
		r.Strict = rapid.Bool().Draw(t, "strict")
	case 4:
		r.Algorithm = flow.FixedWindow
	case 1:
		r.Algorithm, r.MaxWait = flow.TokenBucket, wait
		r.Burst = rapid.SampledFrom([]float64{0, 1, 4, 12}).Draw(t, "burst")
		r.Overdraft = rapid.Bool().Draw(t, "overdraft")
	case 0:
		r.Algorithm, r.MaxWait = flow.Throttle, wait
	case 5:
		r.Buckets = 2
		r.Related = rapid.SampledFrom(modelNames).Filter(func(name string) bool { return name != r.Resource }).Draw(t, "related")
	}
}

// targets says whether a rule guards a resource.
func targets(r flow.Rule, resource string) bool {
	if r.Match == "" {
		return r.Resource == resource
	}
	pattern, err := match.Compile(r.Match)
	return err == nil && pattern.Matches(resource) && resource != r.Related
}

// applying returns the rules that apply to a call, in the order in which they
// are asked.
func applying(rules []flow.Rule, resource, origin string) (applied []flow.Rule) {
	here := slices.DeleteFunc(slices.Clone(rules), func(r flow.Rule) bool { return !targets(r, resource) })
	if origin == "" || !slices.ContainsFunc(here, func(r flow.Rule) bool { return r.Origin == origin }) {
		origin = rule.OtherOrigins
	}
	here = slices.DeleteFunc(here, func(r flow.Rule) bool { return r.Origin != "" && r.Origin != origin })
	slices.SortStableFunc(here, func(a, b flow.Rule) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(breadth(a), breadth(b)),
			cmp.Compare(len(b.Match), len(a.Match)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return here
}

// rank orders queues before windows, and both before shadows.
func rank(r flow.Rule) (order int) {
	if limiterOf(r) == byWindow {
		order++
	}
	if r.Shadow {
		order += 2
	}
	return order
}

// breadth orders rules by how many calls they are for.
func breadth(r flow.Rule) int {
	switch {
	case r.Shared || r.Related != "":
		return 2
	case r.Origin == "":
		return 1
	}
	return 0
}

// keepsState says whether a changed rule goes on where the old one was.
func keepsState(a, b flow.Rule) bool { return countsLike(a, b) && limiterOf(a) == limiterOf(b) }

// countsLike says whether what a rule has counted counts under another one.
func countsLike(a, b flow.Rule) bool {
	return a.Resource == b.Resource && a.Match == b.Match && a.Shared == b.Shared && a.Related == b.Related
}
