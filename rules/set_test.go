package rules_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func parse(t *testing.T, name, document string) rules.Set {
	t.Helper()
	set, err := rules.Parse(name, []byte(document))
	require.NoError(t, err)
	return set
}

func TestValidateFindsEveryMistakeAndNamesRulesByIndex(t *testing.T) {
	set := rules.Set{Flow: []flow.Rule{
		{Resource: "a", Limit: 1},
		{Name: "b", Resource: "b", Limit: math.NaN(), MaxWait: 1},
		{},
		{Name: "a", Resource: "c", Buckets: -1},
		{Resource: "a"},
		{Resource: "bell\a"},
		{Resource: strings.Repeat("x", rule.MaxNameLength+1), Name: "\xff"},
		{},
		{Match: "a*", Resource: "r"},
		{Match: "~(", Shared: true},
		{Name: "shared", Resource: "r", Shared: true},
		{Match: "[" + strings.Repeat("x", rule.MaxNameLength), Origin: "\x00"},
	}}
	err := set.Validate()
	require.Error(t, err)
	want := []string{
		`rules: flow[1] "b": limit is NaN: must be from 0 (blocks all) to`,
		`rules: flow[1] "b": maxWait has no effect`,
		`rules: flow[2]: resource is missing: name the resource`,
		`rules: flow[3] "a": buckets is -1: must be from 1 to 1000`,
		`rules: flow[3] "a": name is taken by flow[0]: give one of them another (the default is the resource)`,
		`rules: flow[4] "a": name is taken by flow[0]: give`,
		`rules: flow[5] "bell\a": resource is "bell\a": it has a character U+0007`,
		`rules: flow[6] "\xff": name is "\xff": it is not UTF-8`,
		`rules: flow[6] "\xff": resource is 1025 bytes long: the most is 1024`,
		`rules: flow[7]: resource is missing`,
		`rules: flow[8] "r": match stands beside resource "r"`,
		`rules: flow[9] "~(": match is "~("`,
		`rules: flow[10] "shared": perResource has no effect without match`,
		`1025 bytes`,
		`origin is "\x00": it has a character U+0000`,
	}
	got := strings.Split(err.Error(), "\n")
	require.Len(t, got, len(want), "%v", err)
	for i := range want {
		assert.Contains(t, got[i], want[i])
	}
}

func TestValidateDoesNotPointAtADocumentThatSaysOtherwise(t *testing.T) {
	set := parse(t, "a.yaml", "flow: [{resource: a, limit: 1}]")
	require.NoError(t, set.Validate())
	set.Flow[0].Limit = -1
	assert.ErrorContains(t, set.Validate(), `rules: flow[0] "a": limit is -1`)
}

func TestValidateReturnsATrueNil(t *testing.T) {
	assert.NoError(t, rules.Set{}.Validate())
	assert.NoError(t, rules.Set{Flow: []flow.Rule{{Resource: "a"}, {Resource: "a", Name: "b"}}}.Validate())
}

func TestWithDefaultsLeavesTheSetAsItIs(t *testing.T) {
	set := rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 1}}}
	complete := set.WithDefaults()
	assert.Equal(t, flow.Rule{Resource: "a", Limit: 1}, set.Flow[0])
	assert.Equal(t, flow.Kind().WithDefaults(set.Flow[0]), complete.Flow[0])
	complete.Flow[0].Limit = 2
	assert.InDelta(t, 1, set.Flow[0].Limit, 0)
}

func TestWithDefaultsKeepsPositions(t *testing.T) {
	set := parse(t, "a.yaml", "flow: [{resource: a, limit: 1}]").WithDefaults()
	at, ok := set.Position(rules.KindFlow, "a")
	assert.True(t, ok)
	assert.Equal(t, "a.yaml:1:8", at.String())
}

func TestSetCountsItsRules(t *testing.T) {
	assert.Zero(t, rules.Set{}.Len())
	assert.Equal(t, 2, rules.Set{Flow: make([]flow.Rule, 2)}.Len())
}

func TestARuleMadeInCodeHasNoPosition(t *testing.T) {
	_, ok := rules.Set{Flow: []flow.Rule{{Resource: "a"}}}.Position(rules.KindFlow, "a")
	assert.False(t, ok)
}

func TestKeysAreThoseOfEveryRule(t *testing.T) {
	set := parse(t, "a.yaml", "flow: [{resource: a, limit: 1}, {name: b, resource: c, limit: 1}]")
	a, b := rule.Key{Kind: rules.KindFlow, Name: "a"}, rule.Key{Kind: rules.KindFlow, Name: "b"}
	assert.Equal(t, []rule.Key{a, b}, slices.Collect(set.Keys()))
	for key := range set.Keys() {
		assert.Equal(t, a, key)
		break
	}
}

func TestSetWithOtherRulesKeepsPositionsAndEveryKind(t *testing.T) {
	set := parse(t, "a.yaml", "flow:\n  - {name: a, resource: r, limit: 1}\n  - {name: b, resource: r, limit: 2}\naccess: [{name: c, resource: r, deny: [10.0.0.0/8]}]\n")
	kept := slices.DeleteFunc(slices.Collect(set.All()), func(r rule.Rule) bool { return r.Key().Name == "a" })
	other := rules.NewTable().WithRules(set, slices.Values(kept))
	assert.Equal(t, 2, other.Len())
	assert.Equal(t, "b", other.Flow[0].Name)
	at, ok := other.Position("flow", "b")
	assert.True(t, ok)
	assert.Equal(t, 3, at.Line)
	assert.Equal(t, 3, set.Len(), "which stays as it is")
	assert.Equal(t, set.Access, other.Access)
}
