package rules_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestDiffTellsWhatChangedInARule(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", "resource: a, limit: 1", "limit: 1.0, resource: 'a'", ""},
		{"a default written out", "resource: a, limit: 1", "resource: a, limit: 1, name: a, window: 1s, buckets: 10, algorithm: slidingWindow, strict: false", ""},
		{"other defaults", "resource: a, limit: 1, window: 1s", "resource: a, limit: 1, algorithm: throttle", "algorithm slidingWindow -> throttle"},
		{"a limit", "resource: a, limit: 1", "resource: a, limit: 0", "limit 1 -> 0"},
		{"a default left", "resource: a, limit: 1", "resource: a, limit: 1, window: 90s, buckets: 20", "window 1s -> 1m30s, buckets 10 -> 20"},
		{"a default taken", "resource: a, limit: 1, strict: true, window: 2s", "resource: a, limit: 1", "window 2s -> 1s, strict true -> false"},
		{"what has no default", "resource: a, limit: 1", "resource: a, limit: 1, origin: web, shadow: true", "origin none -> web, shadow false -> true"},
		{"a wait", "resource: a, limit: 1, algorithm: throttle", "resource: a, limit: 1, algorithm: throttle, maxWait: 500ms", "maxWait none -> 500ms"},
		{"a wait no more", "resource: a, limit: 1, algorithm: throttle, maxWait: 1h", "resource: a, limit: 1, algorithm: throttle", "maxWait 1h -> none"},
		{
			"a warm-up", "resource: a, limit: 1", "resource: a, limit: 1, warmUp: {period: 10s, coldFactor: 4}",
			"warmUp.period none -> 10s, warmUp.coldFactor none -> 4",
		},
		{
			"a pattern", "name: a, resource: b, limit: 1", `name: a, match: "b*", perResource: false, limit: 1`,
			"resource b -> none, match none -> b*, perResource true -> false",
		},
		{
			"a token bucket", "resource: a, limit: 5", "resource: a, limit: 5, algorithm: tokenBucket, burst: 20, overdraft: true",
			"algorithm slidingWindow -> tokenBucket, burst none -> 20, overdraft false -> true",
		},
		{
			"a burst that follows the limit", "resource: a, limit: 5, algorithm: tokenBucket", "resource: a, limit: 6, algorithm: tokenBucket",
			"limit 5 -> 6",
		},
		{
			"a burst that no more follows the limit", "resource: a, limit: 5, algorithm: tokenBucket", "resource: a, limit: 6, algorithm: tokenBucket, burst: 8",
			"limit 5 -> 6, burst 5 -> 8",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := parse(t, "from", "flow: [{"+c.from+"}]")
			to := parse(t, "to", "flow: [{"+c.to+"}]")
			got := rules.Diff(from, to)
			if c.want == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Equal(t, `flow rule "a" changed: `+c.want, got[0].String())
		})
	}
}

func TestDiffHasWhatIsAddedThenChangedThenRemovedByName(t *testing.T) {
	from := parse(t, "from", "flow: [{resource: e, limit: 1}, {resource: c, limit: 1}, {resource: a, limit: 1, origin: web}, {resource: d, limit: 1}]")
	to := parse(t, "to", "flow: [{resource: f, limit: 1}, {name: e, resource: x, limit: 1}, {resource: c, limit: 2}, {name: b, resource: f, limit: 3, window: 2s}]")
	var lines []string
	for _, d := range rules.Diff(from, to) {
		assert.Equal(t, rules.KindFlow, d.Kind)
		lines = append(lines, d.String())
	}
	assert.Equal(t, []string{
		`flow rule "b" added: resource f, limit 3, window 2s`,
		`flow rule "f" added: resource f, limit 1`,
		`flow rule "c" changed: limit 1 -> 2`,
		`flow rule "e" changed: resource e -> x`,
		`flow rule "a" removed: resource a, limit 1, origin web`,
		`flow rule "d" removed: resource d, limit 1`,
	}, lines)
}

func TestDiffCompletesSetsMadeInCode(t *testing.T) {
	code := rules.Set{Flow: []flow.Rule{{Match: "a*", Limit: 5}}}
	document := parse(t, "doc", `flow: [{match: "a*", limit: 5, perResource: true}]`)
	assert.Empty(t, rules.Diff(code, document))
	assert.Equal(t, flow.Rule{Match: "a*", Limit: 5}, code.Flow[0], "sets stay as they are")
	assert.Equal(t, []rules.Difference{{
		Kind: rules.KindFlow, Name: "a*", Change: rules.Removed,
		Fields: []rules.FieldDifference{{"match", "a*", ""}, {"limit", "5", ""}},
	}}, rules.Diff(code, rules.Set{}))
}

func TestDiffOfASetWithItselfIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := soundSet().Draw(t, "set")
		other := set.WithDefaults()
		other.Flow = rapid.Permutation(other.Flow).Draw(t, "order")
		assert.Empty(t, rules.Diff(set, other))
	})
}

// TestApplyingDifferencesMakesOneSetOfTheOther takes nothing from the second set
// but what Diff tells of it.
func TestApplyingDifferencesMakesOneSetOfTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := soundSet().Draw(t, "from"), soundSet().Draw(t, "to")
		for i := range min(len(from.Flow), len(to.Flow)) {
			if rapid.Bool().Draw(t, "same name") {
				to.Flow[i].Name = flow.Kind().WithDefaults(from.Flow[i]).Name
			}
		}
		if to.Validate() != nil {
			t.Skip("names are taken twice")
		}
		differences := rules.Diff(from, to)
		assert.True(t, slices.IsSortedFunc(differences, func(a, b rules.Difference) int {
			return cmp.Or(cmp.Compare(a.Change, b.Change), strings.Compare(a.Name, b.Name))
		}))
		documents := fieldsByName(rules.Diff(rules.Set{}, from))
		for _, d := range differences {
			apply(documents, d)
		}
		keepBursts(documents, from, to)
		patched := parseFields(t, documents)
		want := to.WithDefaults()
		slices.SortFunc(want.Flow, func(a, b flow.Rule) int { return strings.Compare(a.Name, b.Name) })
		require.Len(t, patched.Flow, len(want.Flow))
		for i, rule := range want.Flow {
			assert.Equal(t, rule, patched.Flow[i])
		}
	})
}

// keepBursts writes out what rules of both sets have alike for a burst: that is no
// difference, though it may be the default beside one limit and not beside another.
func keepBursts(documents map[string]map[string]string, from, to rules.Set) {
	before := make(map[string]float64)
	for _, rule := range from.WithDefaults().Flow {
		before[rule.Name] = rule.Burst
	}
	for _, rule := range to.WithDefaults().Flow {
		if rule.Burst != 0 && rule.Burst == before[rule.Name] {
			documents[rule.Name]["burst"] = strconv.FormatFloat(rule.Burst, 'g', -1, 64)
		}
	}
}

// fieldsByName returns the fields of rules that were added, by rule and path.
func fieldsByName(added []rules.Difference) map[string]map[string]string {
	documents := make(map[string]map[string]string)
	for _, d := range added {
		apply(documents, d)
	}
	return documents
}

func apply(documents map[string]map[string]string, d rules.Difference) {
	switch d.Change {
	case rules.Removed:
		delete(documents, d.Name)
		return
	case rules.Added:
		documents[d.Name] = map[string]string{"name": d.Name}
	}
	for _, f := range d.Fields {
		documents[d.Name][f.Field] = f.To
		if f.To == "" {
			delete(documents[d.Name], f.Field)
		}
	}
}

// parseFields reads rules of which the fields are known, in order of their names.
func parseFields(t *rapid.T, documents map[string]map[string]string) rules.Set {
	list := []map[string]any{}
	for _, fields := range documents {
		rule := map[string]any{}
		for path, text := range fields {
			var value any = text
			switch path {
			case "limit", "buckets", "burst", "warmUp.coldFactor":
				value = json.Number(text)
			case "strict", "overdraft", "shadow", "perResource":
				value, _ = strconv.ParseBool(text)
			}
			if above, below, nested := strings.Cut(path, "."); nested {
				inner, _ := rule[above].(map[string]any)
				if inner == nil {
					inner = map[string]any{}
				}
				inner[below] = value
				path, value = above, inner
			}
			rule[path] = value
		}
		list = append(list, rule)
	}
	slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	document, err := json.Marshal(map[string]any{"flow": list})
	require.NoError(t, err)
	set, err := rules.Parse("patched", document)
	require.NoError(t, err, "%s", document)
	return set
}
