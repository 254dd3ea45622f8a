package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestYAMLLeavesDefaultsOut(t *testing.T) {
	set := rules.Set{Flow: []flow.Rule{
		flow.Kind().WithDefaults(flow.Rule{Resource: "orders:create"}),
		{
			Name: "pay", Resource: "orders:pay", Limit: 0.5, Window: time.Minute, Algorithm: flow.Throttle, MaxWait: 90 * time.Second,
			WarmUp: flow.WarmUp{Period: time.Hour, ColdFactor: 3, Step: 2 * time.Second},
		},
		{
			Match: "orders:*", Limit: 5, Algorithm: flow.TokenBucket, Burst: 20, Overdraft: true, MaxWait: time.Second,
			Origin: "mobile", Shadow: true,
		},
		{Name: "together", Match: "~^a", Shared: true, Limit: 5, Algorithm: flow.FixedWindow, Related: "b"},
		flow.Kind().WithDefaults(flow.Rule{Name: "alike", Match: "*", Limit: 5, Algorithm: flow.TokenBucket}),
		{Resource: "tight", Limit: 1e9, Window: 5 * time.Hour, Buckets: 20, Strict: true, WarmUp: flow.WarmUp{Period: time.Second}},
	}}
	document, err := set.YAML()
	require.NoError(t, err)
	assert.Equal(t, `flow:
  - resource: orders:create
    limit: 0
  - name: pay
    resource: orders:pay
    limit: 0.5
    window: 1m
    algorithm: throttle
    maxWait: 1m30s
    warmUp:
      period: 1h
      step: 2s
  - match: orders:*
    limit: 5
    algorithm: tokenBucket
    maxWait: 1s
    burst: 20
    overdraft: true
    origin: mobile
    shadow: true
  - name: together
    match: ~^a
    perResource: false
    limit: 5
    algorithm: fixedWindow
    related: b
  - name: alike
    match: '*'
    limit: 5
    algorithm: tokenBucket
  - resource: tight
    limit: 1000000000
    window: 5h
    buckets: 20
    strict: true
    warmUp:
      period: 1s
`, string(document))
}

func TestYAMLOfNoRulesSaysSo(t *testing.T) {
	document, err := rules.Set{}.YAML()
	require.NoError(t, err)
	assert.Equal(t, "flow: []\n", string(document))
}

func TestYAMLQuotesNamesThatAreNotTextWithout(t *testing.T) {
	for _, name := range []string{
		"null", "~", "true", "FALSE", "12", "1e3", ".5", ".inf", ".NaN", "0x1F", "0o7", "0xFFFFFFFFFFFFFFFFFFFFFFFFF", "99999999999999999999999",
		"-", "- a", "? a", ": a", "a: b", "a #b", "#a", "[a]", "{a", "*a", "&a", "!a", "|", ">", "%a", "@a", "`a", "'a'", `"a"`, "a\\b", " a ", "<<", "---", "...", "=", "日本",
	} {
		set := rules.Set{Flow: []flow.Rule{{Resource: name, Origin: name, Related: name + name}}}.WithDefaults()
		document, err := set.YAML()
		require.NoError(t, err, name)
		back, err := rules.Parse("", document)
		require.NoError(t, err, "%s", document)
		assert.Equal(t, set.Flow, back.Flow)
	}
}

func TestYAMLRefusesWhatParseWould(t *testing.T) {
	_, err := rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: -1}}}.YAML()
	var problems rules.Problems
	require.ErrorAs(t, err, &problems)

	var set rules.Set
	for i := range 50_000 {
		set.Flow = append(set.Flow, flow.Rule{Resource: fmt.Sprint("resource-", i)})
	}
	_, err = set.YAML()
	assert.ErrorContains(t, err, "the most is 1048576")
}

func TestYAMLOfManyRulesIsOneList(t *testing.T) {
	for _, n := range []int{1, 199, 200, 201, 400, 1001} {
		var set rules.Set
		for i := range n {
			set.Flow = append(set.Flow, flow.Kind().WithDefaults(flow.Rule{Resource: fmt.Sprint("resource-", i), Limit: float64(i)}))
		}
		document, err := set.YAML()
		require.NoError(t, err)
		assert.Equal(t, 1+2*n, strings.Count(string(document), "\n"))
		back, err := rules.Parse("", document)
		require.NoError(t, err)
		assert.Equal(t, set.Flow, back.Flow)
	}
}
