package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestSharesOfTenantsAreReadBackAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, document := range []string{`
isolation:
  - {name: pool, resource: search, limit: 10, maxWait: 1s, fairBy: tenant, weights: {gold: 2, "7": 0.5, 7: 3}, mask: hash}
  - {resource: reports, limit: 1, maxWait: 1s, fairBy: [tenant, region], weightBy: calls, newcomers: equal}
`, `{"isolation": [
  {"name": "pool", "resource": "search", "limit": 10, "maxWait": "1s", "fairBy": ["tenant"], "weights": {"gold": 2}, "weightBy": "time"}
]}`} {
		set, err := rules.Parse("", []byte(document))
		require.NoError(t, err)
		written, err := set.YAML()
		require.NoError(t, err)
		again, err := rules.Parse("", written)
		require.NoError(t, err, string(written))
		assert.Equal(t, set.Isolation, again.Isolation)
		assert.Empty(t, rules.Diff(set, again))
		first := set.Isolation[0]
		assert.Equal(t, rule.StringsOf("tenant"), first.FairBy)
		assert.Equal(t, isolation.ByTime, first.WeightBy)
		assert.Equal(t, time.Second, first.MaxWait)
	}
}

func TestSharesOfTenantsInFlowQueuesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	set, err := rules.Parse("", []byte(`
flow:
  - {name: a, resource: r, limit: 10, algorithm: throttle, maxWait: 1s, fairBy: tenant, weights: {gold: 2}, mask: hash}
  - {name: b, resource: r, limit: 1000, algorithm: tokenBucket, maxWait: 1s, fairBy: [tenant, region], weightBy: calls, newcomers: equal}
`))
	require.NoError(t, err)
	written, err := set.YAML()
	require.NoError(t, err)
	again, err := rules.Parse("", written)
	require.NoError(t, err, string(written))
	assert.Equal(t, set.Flow, again.Flow)
	assert.Equal(t, flow.ByTokens, set.Flow[0].WeightBy)
	assert.Equal(t, rule.NewcomersEqual, set.Flow[0].Newcomers, "10 tokens may wait")
	_, err = rules.Parse("", []byte("flow:\n- {resource: r, limit: 1, algorithm: throttle, maxWait: 1s, scope: fleet,\n  fairBy: tenant}\n"))
	assert.ErrorContains(t, err, `3:11: flow rule "r": fairBy has no effect with scope "fleet"`)
}

func TestMistakesInSharesOfTenantsAreShownWhereTheyAre(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[string]string{
		"weights: {a: 0}":    `5:12: isolation rule "r": weights has an entry "a" that is 0: must be from 0.01 to 1000`,
		"weights: {a: much}": `5:12: isolation rule "r": weights has an entry "a" that is "much"`,
		"weightBy: byte":     `5:13: isolation rule "r": weightBy is "byte"`,
		"order: lifo":        `4:11: isolation rule "r": fairBy has no effect with order: lifo`,
		"newcomers: none":    `5:14: isolation rule "r": newcomers is "none"`,
		"mask: hush":         `5:9: isolation rule "r": mask is "hush": did you mean "hash"?`,
	} {
		document := "isolation:\n- {resource: r, limit: 1, maxWait: 1s,\n\n  fairBy: tenant,\n  " + wrong + "}\n"
		_, err := rules.Parse("", []byte(document))
		assert.ErrorContains(t, err, want, wrong)
	}
}
