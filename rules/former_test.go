package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestFormerFieldControlIsReadAndNotWritten(t *testing.T) {
	throttle := flow.Rule{Resource: "a", Limit: 5, Algorithm: flow.Throttle, MaxWait: time.Second}
	for fields, want := range map[string]flow.Rule{
		"control: throttle, maxWait: 1s":                           throttle,
		"maxWait: 1s, control: throttle, algorithm: throttle":      throttle,
		"algorithm: slidingWindow, maxWait: 1s, control: throttle": throttle, // a default written out
		"algorithm: leakyBucket, maxWait: 1s":                      throttle,
		"control: reject":                                          {Resource: "a", Limit: 5},
		"control: reject, algorithm: slidingWindow, buckets: 5":    {Resource: "a", Limit: 5, Buckets: 5},
		"control: reject, algorithm: tokenBucket":                  {Resource: "a", Limit: 5, Algorithm: flow.TokenBucket},
		"algorithm: fixedWindow, control: reject":                  {Resource: "a", Limit: 5, Algorithm: flow.FixedWindow},
	} {
		set := parse(t, "a.yaml", "flow: [{resource: a, limit: 5, "+fields+"}]")
		require.Equal(t, []flow.Rule{flow.Kind().WithDefaults(want)}, set.Flow, fields)
		written, err := set.YAML()
		require.NoError(t, err)
		assert.NotContains(t, string(written), "control", fields)
		assert.NotContains(t, string(written), "leakyBucket", fields)
		again, err := rules.Parse("a.yaml", written)
		require.NoError(t, err)
		assert.Equal(t, set.Flow, again.Flow, fields)
	}
}

func TestFormerFieldControlIsNotAdvised(t *testing.T) {
	_, err := rules.Parse("a.yaml", []byte("flow: [{resource: a, limit: 5, contrl: throttle}]"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "control")
}

func TestFormerFieldControlIsReportedBesideOtherMistakes(t *testing.T) {
	_, err := rules.Parse("a.yaml", []byte("flow: [{resource: a, limit: -5, algorithm: tokn, control: thottle, burst: 5}]"))
	assert.EqualError(t, err, `rules: a.yaml:1:29: flow rule "a": limit is -5: must be from 0 (blocks all) to 1000000000 tokens per window
rules: a.yaml:1:44: flow rule "a": algorithm is "tokn": must be "slidingWindow", "fixedWindow", "tokenBucket", "throttle" or "prepaid"
rules: a.yaml:1:59: flow rule "a": control is "thottle": did you mean "throttle"?`)
}
