package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestMergeJoinsSetsAndKeepsPositions(t *testing.T) {
	a := parse(t, "a.yaml", "flow: [{resource: a, limit: 1}]")
	b := parse(t, "b.yaml", "flow:\n- {resource: b, limit: 2}\n- {resource: a, name: a2, limit: 3}")
	code := rules.Set{Flow: []flow.Rule{{Resource: "c", Limit: 4}}}
	merged, err := rules.Merge(a, b, code)
	require.NoError(t, err)
	assert.Equal(t, []flow.Rule{a.Flow[0], b.Flow[0], b.Flow[1], code.Flow[0]}, merged.Flow)
	for name, want := range map[string]string{"a": "a.yaml:1:8", "b": "b.yaml:2:3", "a2": "b.yaml:3:3"} {
		at, ok := merged.Position(rules.KindFlow, name)
		assert.True(t, ok, name)
		assert.Equal(t, want, at.String())
	}
	_, ok := merged.Position(rules.KindFlow, "c")
	assert.False(t, ok)
}

func TestMergeNamesBothPlacesOfANameTakenTwice(t *testing.T) {
	first := parse(t, "z.yaml", "flow:\n- {resource: a, limit: 1}\n- {resource: b, limit: 1}")
	second := parse(t, "b.yaml", "flow: [{resource: a, limit: 2}]")
	third := parse(t, "a.yaml", "flow: [{name: a, resource: c, limit: 3}]")
	code := rules.Set{Flow: []flow.Rule{{Resource: "d"}, {Resource: "b"}}}
	later := rules.Set{Flow: []flow.Rule{{Resource: "d"}}}
	merged, err := rules.Merge(first, second, third, code, later)
	assert.Equal(t, rules.Set{}, merged)
	const advice = ": give one of them another (the default is the resource)"
	assert.EqualError(t, err, `rules: flow[1] "b": name is taken by the rule at z.yaml:3:3`+advice+`
rules: flow[0] "d": name is taken by flow[0], made in code`+advice+`
rules: a.yaml:1:8: flow rule "a": name is taken by the rule at z.yaml:2:3`+advice+`
rules: b.yaml:1:8: flow rule "a": name is taken by the rule at z.yaml:2:3`+advice)
}

func TestMergeTellsNamesThatPatternsHaveByDefault(t *testing.T) {
	a := parse(t, "a.yaml", `flow: [{match: "orders:*", limit: 1}]`)
	for name, document := range map[string]string{
		"another pattern": `{"flow": [{"match": "orders:*", "limit": 2, "origin": "mobile"}]}`,
		"a resource":      `{"flow": [{"resource": "orders:*", "limit": 2}]}`,
		"a name":          `{"flow": [{"name": "orders:*", "match": "o*", "limit": 2}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rules.Merge(a, parse(t, "b.json", document))
			assert.ErrorContains(t, err, `rules: b.json:1:11: flow rule "orders:*": name is taken by the rule at a.yaml:1:8: give`)
		})
	}
}

func TestMergeLeavesTheSetsAsTheyAre(t *testing.T) {
	room := []flow.Rule{{Resource: "a"}, {}, {}}
	a := rules.Set{Flow: room[:1]}
	merged, err := rules.Merge(a, rules.Set{Flow: []flow.Rule{{Resource: "b"}}})
	require.NoError(t, err)
	merged.Flow[0].Limit = 9
	assert.Equal(t, flow.Rule{Resource: "a"}, a.Flow[0])
	assert.Equal(t, flow.Rule{}, room[1], "nothing is written behind the end")
}

func TestMergeOfNothingIsEmpty(t *testing.T) {
	merged, err := rules.Merge()
	require.NoError(t, err)
	assert.Zero(t, merged.Len())
}

func TestClashesAreThoseThatMergeFinds(t *testing.T) {
	inForce := parse(t, "z.yaml", "flow:\n- {resource: a, limit: 1}\n- {resource: b, limit: 1}")
	next := parse(t, "b.yaml", "flow: [{resource: b, limit: 2}, {resource: c, limit: 3}, {resource: a, limit: 4}]")
	_, want := rules.Merge(inForce, next)
	err := rules.NewTable().Clashes(next, func(key rule.Key) string {
		if at, taken := inForce.Position(key.Kind, key.Name); taken {
			return "the rule at " + at.String()
		}
		return ""
	})
	require.Error(t, err)
	assert.Equal(t, want, err)
	assert.NoError(t, rules.NewTable().Clashes(next, func(rule.Key) string { return "" }))
}
