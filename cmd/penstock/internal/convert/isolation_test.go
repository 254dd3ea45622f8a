package convert_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

func TestConvertedIsolationRulesDoTheSame(t *testing.T) {
	ten := isolation.Rule{Resource: "r", Limit: 10}
	for fields, want := range map[string]isolation.Rule{
		`"metricType": 0, "threshold": 10`:                    ten,
		`"MetricType": 0, "Threshold": 10, "ID": "pool"`:      {Name: "pool", Resource: "r", Limit: 10},
		`"metricType": null, "threshold": 10`:                 ten,
		`"grade": 0, "count": 10`:                             ten,
		`"grade": 0, "count": 10.9, "limitApp": "default"`:    ten,
		`"grade": 0, "count": 0`:                              {Resource: "r"},
		`"grade": 0, "count": 10, "limitApp": "mobile"`:       {Resource: "r", Limit: 10, Origin: "mobile"},
		`"grade": 0, "count": 10, "controlBehavior": 1`:       ten, // without effect
		`"grade": 0, "count": 10, "controlBehavior": 2`:       ten, // without effect
		`"grade": 0, "count": 10, "maxQueueingTimeMs": 0`:     ten, // without effect
		`"grade": 0, "count": 10, "regex": true`:              {Match: "~^(?:r)$", Limit: 10},
		`"metricType": 0, "count": 10`:                        ten,
		`"metricType": 0, "count": 10, "limitOrigin": "demo"`: {Resource: "r", Limit: 10, Origin: "demo"},
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Equal(t, []isolation.Rule{want}, rules.Isolation)
			assert.Empty(t, findings)
			assert.Empty(t, rules.Flow)
			assert.Empty(t, rules.Breaker)
		})
	}
}

func TestIsolationRulesThatCannotBeConvertedAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"metricType": 0, "threshold": 0`:                                 `f:1:50: rule on "r": left out: Sentinel ignores a rule whose threshold is missing or 0`,
		`"metricType": 1, "threshold": 5`:                                 `metricType is 1, which Sentinel does not know`,
		`"metricType": 0, "threshold": 1.5`:                               `threshold is 1.5: must be a whole number`,
		`"metricType": 0, "threshold": 2000000`:                           `as a rule here, limit is 2000000: must be from 0`,
		`"grade": 0, "count": 2e6`:                                        `count is 2e+06: an isolation rule here allows at most 1000000 calls under way`,
		`"grade": 0, "count": 1e300`:                                      `count is 1e+300: an isolation rule here allows at most`,
		`"grade": 0, "count": 1, "clusterMode": true`:                     `it is a limit of the whole cluster (clusterMode)`,
		`"grade": 0, "count": 1, "strategy": 1, "refResource": "w"`:       `it looks at the calls under way on the related resource "w" (strategy 1)`,
		`"grade": 0, "count": 1, "strategy": 2, "refResource": "web"`:     `it counts the calls that come by the entrance "web"`,
		`"grade": 0, "count": 1, "regex": true, "controlBehavior": 2`:     `Sentinel ignores a rule with regex whose controlBehavior is not 0`,
		`"metricType": 0, "count": 1, "controlBehavior": 1`:               `its limit of the calls under way warms up (controlBehavior 1)`,
		`"metricType": 0, "count": 1, "relationStrategy": 1, "id": "a b"`: `ignores a rule on a related resource without refResource`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Empty(t, rules)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], "left out: ")
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestOldGoRulesThatThrottleLimitTheRate(t *testing.T) {
	rules, findings := convertFields(t, `"metricType": 0, "count": 10, "controlBehavior": 2`)
	require.Len(t, rules, 1)
	assert.Equal(t, flow.Throttle, rules[0].Algorithm)
	assert.Empty(t, findings)
}

func TestWhatAllIsolationRulesDoDifferentlyIsReportedOnce(t *testing.T) {
	found := notes(`[{"resource": "a", "count": 1}, {"resource": "b", "grade": 0, "count": 1}, {"resource": "c", "metricType": 0, "threshold": 1}]`)
	require.Len(t, found, 1)
	assert.Contains(t, found[0], "f:1:33: differs: isolation rules: in Sentinel a call with a batch count counts as that many calls")
}

func TestPatternsOfFlowRulesAreComparedWithIsolationRules(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(
		`[{"resource": "/u/.*", "count": 1, "regex": true}, {"resource": "/u/a", "grade": 0, "count": 2}]`)})
	require.NotEmpty(t, c.Findings)
	assert.Contains(t, c.Findings[0].String(), `rule on "/u/.*": differs: in Sentinel a pattern does not apply`)
}

func TestNamesAreUniqueWithinAKind(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(`[
		{"resource": "a", "count": 1}, {"resource": "a", "count": 1, "grade": 0}, {"resource": "a", "count": 2, "grade": 0},
		{"resource": "a", "count": 1, "grade": 2, "timeWindow": 1}, {"resource": "a", "count": 2, "grade": 2, "timeWindow": 1}
	]`)})
	require.Len(t, c.Rules.Flow, 1)
	require.Len(t, c.Rules.Isolation, 2)
	require.Len(t, c.Rules.Breaker, 2)
	assert.Empty(t, c.Rules.Flow[0].Name)
	assert.Equal(t, []string{"", "a-2"}, []string{c.Rules.Isolation[0].Name, c.Rules.Isolation[1].Name})
	assert.Equal(t, []string{"", "a-2"}, []string{c.Rules.Breaker[0].Name, c.Rules.Breaker[1].Name})
}
