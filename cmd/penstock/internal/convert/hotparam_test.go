package convert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// values returns a mapping of texts, numbers and booleans, as documents write them, to
// limits: "7" in quotes is a text.
func values(pairs ...any) rule.NumberMap {
	var entries []rule.NumberEntry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, rule.NumberEntry{Key: rule.ParseAttribute(pairs[i].(string)), Value: float64(pairs[i+1].(int))})
	}
	return rule.NumberMapOf(entries...)
}

// hot returns a rule for an attribute.
func hot(param string, change func(*hotparam.Rule)) hotparam.Rule {
	r := hotparam.Rule{Resource: "r", Param: rule.StringsOf(param), Limit: 10, Window: time.Second}
	if change != nil {
		change(&r)
	}
	return r
}

func TestConvertedHotParamRulesDoTheSame(t *testing.T) {
	first := hot("arg0", nil)
	with := func(change func(*hotparam.Rule)) hotparam.Rule { return hot("arg0", change) }
	atOnce := func(n int) hotparam.Rule {
		return with(func(r *hotparam.Rule) { r.Limit, r.Window, r.Concurrency = 0, 0, n })
	}
	throttle := with(func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.Throttle, 500*time.Millisecond })
	items := func(list string) string {
		return `"metricType": 1, "threshold": 10, "durationInSec": 1, "specificItems": [` + list + `]`
	}
	javaItems := func(list string) string { return `"paramIdx": 0, "count": 10, "paramFlowItemList": [` + list + `]` }
	for fields, want := range map[string]hotparam.Rule{
		`"metricType": 1, "paramIndex": 0, "threshold": 10, "durationInSec": 1`:                                first,
		`"METRICTYPE": 1, "PARAMINDEX": 0, "Threshold": 10, "DurationInSec": 1`:                                first,
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "specificItems": null`:                          first,
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "maxQueueingTimeMs": 5`:                         first, // without effect
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "paramsMaxCapacity": 5000`:                      first, // no fewer than here
		`"metricType": 1, "threshold": 10, "durationInSec": 60`:                                                with(func(r *hotparam.Rule) { r.Window = time.Minute }),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "burstCount": 5`:                                with(func(r *hotparam.Rule) { r.Burst = 15 }),
		`"metricType": 1, "threshold": 0, "durationInSec": 1, "burstCount": 5`:                                 with(func(r *hotparam.Rule) { r.Limit = 0 }),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "paramIndex": 2`:                                hot("arg2", nil),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "paramIndex": -1`:                               hot("arg-1", nil),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "paramKey": "user"`:                             hot("user", nil),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "paramKey": "", "paramIndex": 1`:                hot("arg1", nil),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "id": "per-user"`:                               with(func(r *hotparam.Rule) { r.Name = "per-user" }),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "paramsMaxCapacity": 200000`:                    with(func(r *hotparam.Rule) { r.MaxValues = 200_000 }),
		`"metricType": 1, "threshold": 10, "durationInSec": 1, "controlBehavior": 1, "maxQueueingTimeMs": 500`: throttle,
		`"metricType": 0, "threshold": 3, "paramIndex": 0`:                                                     atOnce(3),
		`"metricType": 0, "threshold": 3, "paramIndex": 0, "controlBehavior": 1, "burstCount": 9`:              atOnce(3), // without effect
		items(`{"valKind": 0, "valStr": "7", "threshold": 1}, {"valKind": 1, "valStr": "7", "threshold": 2}`): with(func(r *hotparam.Rule) {
			r.Values = rule.NumberMapOf(
				rule.NumberEntry{Key: rule.Int(7), Value: 1},
				rule.NumberEntry{Key: rule.String("7"), Value: 2})
		}),
		items(`{"valKind": 2, "valStr": "T", "threshold": 0}, {"valKind": 0, "valStr": "-03", "threshold": 5}, {"valKind": 1, "valStr": "u"}`): with(
			func(r *hotparam.Rule) { r.Values = values("true", 0, "-3", 5, "u", 0) }),
		items(`{"valKind": 1, "valStr": "u", "threshold": 1}, {"valKind": 1, "valStr": "u", "threshold": 2}`): with(
			func(r *hotparam.Rule) { r.Values = values("u", 2) }),
		items(`{"valKind": 1, "valStr": "a*[b?\\", "threshold": 1}, {"valKind": 1, "valStr": "~u", "threshold": 2}`): with(
			func(r *hotparam.Rule) { r.Values = values(`a\*\[b\?\\`, 1, `\~u`, 2) }),

		`"paramIdx": 0, "count": 10`:                                                                              first,
		`"paramIdx": 0, "count": 10.9, "grade": 1, "controlBehavior": 1`:                                          first, // Sentinel ignores both
		`"paramIdx": 0, "count": 10, "limitApp": "mobile", "app": "a", "clusterMode": false, "clusterConfig": {}`: first, // without effect
		`"paramIdx": 3, "count": 10`:                                                                              hot("arg3", nil),
		`"paramIdx": -2, "count": 10`:                                                                             hot("arg-2", nil),
		`"paramIdx": 0, "count": 10, "durationInSec": 60`:                                                         with(func(r *hotparam.Rule) { r.Window = time.Minute }),
		`"paramIdx": 0, "count": 10, "burstCount": 2`:                                                             with(func(r *hotparam.Rule) { r.Burst = 12 }),
		`"paramIdx": 0, "count": 10, "controlBehavior": 2, "maxQueueingTimeMs": 500`:                              throttle,
		`"paramIdx": 0, "count": 3, "grade": 0`:                                                                   atOnce(3),
		`"paramIdx": 0, "count": 10, "regex": true`:                                                               with(func(r *hotparam.Rule) { r.Resource, r.Match = "", "~^(?:r)$" }),
		javaItems(``): first,
		javaItems(`{"object": "k", "count": 5, "classType": "java.lang.String"}, {"object": "k2", "count": 6}, {"object": "k3", "count": 7, "classType": "x"}`): with(
			func(r *hotparam.Rule) { r.Values = values("k", 5, "k2", 6, "k3", 7) }),
		javaItems(`{"object": "true", "count": 5, "classType": "boolean"}, {"object": "no", "count": 6, "classType": "java.lang.Boolean"}`): with(
			func(r *hotparam.Rule) { r.Values = values("true", 5, "false", 6) }),
		javaItems(`{"object": "xyz", "count": 500.0, "classType": "char"}`): with(func(r *hotparam.Rule) { r.Values = values("x", 500) }),
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Equal(t, []hotparam.Rule{want}, rules.HotParam)
			assert.Empty(t, findings)
			assert.Equal(t, 1, rules.Len())
		})
	}
}

func TestWholeNumbersOfJavaAreOneKindOfValue(t *testing.T) {
	for _, class := range []string{"int", "java.lang.Integer", "long", "java.lang.Long", "short", "java.lang.Short", "byte", "java.lang.Byte"} {
		rules, findings := convertRule(t, `"paramIdx": 0, "count": 10, "paramFlowItemList": [{"object": 7, "count": 5, "classType": "`+class+`"}]`)
		assert.Equal(t, []hotparam.Rule{hot("arg0", func(r *hotparam.Rule) { r.Values = values("7", 5) })}, rules.HotParam)
		assert.Empty(t, findings)
	}
}

func TestHotParamRulesThatCannotBeConvertedAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"metricType": 1, "paramIndex": 0`:                                                                                   `f:1:2: rule on "r": left out: there is neither a threshold (Go) nor a count (Java)`,
		`"metricType": 1, "threshold": 1, "paramIndex": 0`:                                                                   `left out: Sentinel ignores a rule whose durationInSec is missing or 0`,
		`"metricType": 2, "threshold": 1, "paramIndex": 0`:                                                                   `left out: metricType is 2, which Sentinel does not know`,
		`"metricType": 1, "threshold": 1, "durationInSec": 1, "controlBehavior": 2`:                                          `left out: controlBehavior is 2, which Sentinel does not know`,
		`"metricType": 1, "threshold": 1.5, "durationInSec": 1`:                                                              `left out: threshold is 1.5: must be a whole number`,
		`"metricType": 1, "threshold": -1, "durationInSec": 1`:                                                               `left out: threshold is -1: must be a number from 0`,
		`"metricType": 1, "threshold": 1, "durationInSec": 1, "paramIndex": "0"`:                                             `left out: paramIndex is "0": must be a whole number`,
		`"metricType": 1, "threshold": 1, "durationInSec": 1, "paramIndex": 9999999999`:                                      `left out: paramIndex is 9999999999: must be a whole number`,
		`"metricType": 1, "threshold": 1, "durationInSec": 1, "paramIndex": 1, "paramKey": "u"`:                              `left out: Sentinel ignores a rule with paramKey and a paramIndex above 0: remove one of them`,
		`"metricType": 1, "threshold": 1, "durationInSec": 1, "specificItems": {}`:                                           `left out: specificItems is an object: must be a list`,
		`"metricType": 1, "threshold": 1, "durationInSec": 100000`:                                                           `left out: as a rule here, window is`,
		`"metricType": 1, "threshold": 2000000000, "durationInSec": 1`:                                                       `left out: as a rule here, limit is 2e+09`,
		`"metricType": 0, "threshold": 2000000, "paramIndex": 0`:                                                             `left out: as a rule here, concurrency is 1000001: must be from 1`,
		`"metricType": 0, "threshold": 0, "paramIndex": 0, "specificItems": [{"valKind": 1, "valStr": "u", "threshold": 2}]`: `left out: threshold is 0, but some values have a limit of their own`,

		`"paramIdx": 0, "count": 1, "grade": 2`:                              `left out: grade is 2, which Sentinel does not know`,
		`"count": 1, "durationInSec": 1`:                                     `left out: Sentinel ignores a rule without paramIdx`,
		`"paramIdx": null, "count": 1, "burstCount": 1`:                      `left out: Sentinel ignores a rule without paramIdx`,
		`"paramIdx": 0, "count": 1, "durationInSec": 0`:                      `left out: Sentinel ignores a rule whose durationInSec is missing or 0`,
		`"paramIdx": 0, "count": 1, "clusterMode": true`:                     `left out: it is a limit of the whole cluster (clusterMode)`,
		`"paramIdx": 0, "count": 1, "regex": true, "id": 1, "resource": "x"`: `left out: the field "resource" is given twice`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Empty(t, rules)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestValuesThatCannotBeConvertedAreLeftOutOfTheirRule(t *testing.T) {
	for item, want := range map[string]string{
		`"specificItems": [{"valKind": 0, "valStr": "x", "threshold": 1}]`:   `valStr is "x": Sentinel ignores a value that is no whole number; remove it`,
		`"specificItems": [{"valKind": 2, "valStr": "yes", "threshold": 1}]`: `valStr is "yes": Sentinel ignores a value that is no boolean`,
		`"specificItems": [{"valKind": 3, "valStr": "2.5", "threshold": 1}]`: `the value "2.5" is a floating-point number`,
		`"specificItems": [{"valKind": 4, "valStr": "2.5", "threshold": 1}]`: `valKind is 4, which Sentinel does not know`,
		`"specificItems": [{"valKind": 1, "valStr": 5, "threshold": 1}]`:     `valStr is 5: must be text`,
		`"specificItems": ["u"]`: `"u" is no rule: must be an object`,
		`"paramFlowItemList": [{"object": "x", "count": 1, "classType": "int"}]`:    `object is "x": Sentinel ignores a value that is no int; remove it`,
		`"paramFlowItemList": [{"object": "300", "count": 1, "classType": "byte"}]`: `object is "300": Sentinel ignores a value that is no byte`,
		`"paramFlowItemList": [{"object": "", "count": 1, "classType": "char"}]`:    `object is "": Sentinel ignores a value that is no char`,
		`"paramFlowItemList": [{"object": "1", "count": 1, "classType": "float"}]`:  `the value "1" is a floating-point number`,
		`"paramFlowItemList": [{"object": ["x"], "count": 1}]`:                      `object is a list: must be text, a number or a boolean`,
		`"paramFlowItemList": [{"object": "x"}]`:                                    `Sentinel ignores a value without an object or a count`,
		`"paramFlowItemList": [{"count": 1}]`:                                       `Sentinel ignores a value without an object or a count`,
		`"paramFlowItemList": [{"object": "x", "count": -1}]`:                       `count is -1: must be a number from 0`,
	} {
		t.Run(item, func(t *testing.T) {
			fields := `"count": 10, "paramIdx": 0, `
			if item[1] == 's' {
				fields = `"metricType": 1, "threshold": 10, "durationInSec": 1, `
			}
			rules, findings := convertRule(t, fields+item)
			assert.Equal(t, []hotparam.Rule{hot("arg0", nil)}, rules.HotParam)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], `: rule on "r": left out: `+want)
		})
	}
}

func TestUnknownFieldsOfValuesAreReported(t *testing.T) {
	_, findings := convertRule(t, `"paramIdx": 0, "count": 10, "paramFlowItemList": [{"object": "x", "count": 1, "class": "int"}]`)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], `left out: the field "class": items of paramFlowItemList of Sentinel for Java have none of that name`)
	_, findings = convertRule(t, `"threshold": 10, "durationInSec": 1, "metricType": 1, "specificItems": [{"valKind": 1, "valStr": "x", "count": 1}]`)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], `left out: the field "count": specificItems of sentinel-golang have none of that name`)
}

func TestHotParamRulesThatBehaveDifferentlyAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"metricType": 1, "threshold": 1001, "durationInSec": 1, "controlBehavior": 1`:                      `f:1:50: rule on "r": differs: Sentinel throttles nothing here`,
		`"paramIdx": 0, "count": 60001, "durationInSec": 60, "controlBehavior": 2`:                          `Sentinel throttles nothing here`,
		`"paramIdx": 0, "count": 10, "burstCount": 5, "paramFlowItemList": [{"object": "x", "count": 100}]`: `in Sentinel each value may save 5 more than its own threshold; here it is 15 tokens for all values`,
		`"metricType": 0, "threshold": 10, "paramsMaxCapacity": 20000000`:                                   `Sentinel keeps 20000000 values; here the most is 10000000`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Len(t, rules.HotParam, 1)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], "differs: ")
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestNoCallPassesALimitOfNoneAtOnce(t *testing.T) {
	const note = `differs: Sentinel lets the first call of a value pass even if its limit of calls under way is 0; here none passes`
	rules, findings := convertRule(t, `"metricType": 0, "threshold": 0, "paramIndex": 0`)
	assert.Equal(t, []hotparam.Rule{hot("arg0", func(r *hotparam.Rule) { r.Limit, r.Window = 0, 0 })}, rules.HotParam)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], note)
	rules, findings = convertRule(t, `"metricType": 0, "threshold": 3, "specificItems": [{"valKind": 1, "valStr": "u", "threshold": 0}]`)
	assert.Equal(t, values("u", 0), rules.HotParam[0].Values)
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0], note)
}

func TestTheAttributeOfAnArgumentIsExplainedOnce(t *testing.T) {
	found := notes(`[{"resource": "a", "paramIdx": 0, "count": 1, "grade": 0}, {"resource": "b", "paramIdx": 0, "count": 1, "grade": 0},
		{"resource": "c", "metricType": 0, "threshold": 1, "paramIndex": 1}, {"resource": "d", "metricType": 0, "threshold": 1, "paramKey": "user"}]`)
	require.Len(t, found, 5)
	assert.Contains(t, found[0], `f:1:2: differs: hot parameters: the argument with the index 0 is the attribute arg0 here, which the program gives to a call: core.String("arg0", …)`)
	assert.Contains(t, found[1], "Sentinel counts each element")
	assert.Contains(t, found[2], "Sentinel forgets")
	assert.Contains(t, found[3], `the argument with the index 1 is the attribute arg1 here`)
	assert.Contains(t, found[4], `the attachment "user" is the attribute user here`)
}

// The dashboard keeps rules for hot parameters within another object.
func TestRulesOfTheDashboardAreUnwrapped(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(
		`[{"id": 3, "app": "shop", "ip": "10.0.0.1", "port": 8719, "rule": {"resource": "r", "paramIdx": 0, "count": 10, "limitApp": "default"}}]`)})
	assert.Equal(t, []hotparam.Rule{hot("arg0", nil)}, c.Rules.HotParam)
}
