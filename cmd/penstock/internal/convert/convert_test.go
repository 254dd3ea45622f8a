package convert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// convertRule converts one rule on the resource r. It returns the findings without the
// notes about all rules of a kind.
func convertRule(t *testing.T, fields string) (rules.Set, []string) {
	t.Helper()
	c := convert.Convert(convert.File{Name: "f", Data: []byte(`[{"resource": "r", ` + fields + `}]`)})
	var findings []string
	for _, f := range c.Findings {
		if f.Kind != convert.Differs || f.Resource != "" {
			findings = append(findings, f.String())
		}
	}
	return c.Rules, findings
}

// convert is convertRule for flow rules.
func convertFields(t *testing.T, fields string) ([]flow.Rule, []string) {
	t.Helper()
	rules, findings := convertRule(t, fields)
	assert.Empty(t, rules.Isolation)
	assert.Empty(t, rules.Breaker)
	return rules.Flow, findings
}

func TestConvertedFlowRulesDoTheSame(t *testing.T) {
	window := func(limit float64, d time.Duration, buckets int) flow.Rule {
		return flow.Rule{Resource: "r", Limit: limit, Window: d, Buckets: buckets}
	}
	fixed := func(limit float64, d time.Duration) flow.Rule {
		return flow.Rule{Resource: "r", Limit: limit, Window: d, Algorithm: flow.FixedWindow}
	}
	second := window(10, time.Second, 2)
	with := func(rule flow.Rule, change func(*flow.Rule)) flow.Rule {
		change(&rule)
		return rule
	}
	queue := func(d, wait time.Duration) flow.Rule {
		return flow.Rule{Resource: "r", Limit: 10, Window: d, Algorithm: flow.Throttle, MaxWait: wait}
	}
	for fields, want := range map[string]flow.Rule{
		`"threshold": 10`:                                            second,
		`"Threshold": 10, "STATINTERVALINMS": 0`:                     second,
		`"threshold": 10, "statIntervalInMs": 1000`:                  second,
		`"threshold": 10, "statIntervalInMs": null`:                  second,
		`"threshold": 10, "statIntervalInMs": 500`:                   fixed(10, 500*time.Millisecond),
		`"threshold": 10, "statIntervalInMs": 5`:                     fixed(10, 5*time.Millisecond),
		`"threshold": 10, "statIntervalInMs": 700`:                   fixed(10, 700*time.Millisecond),
		`"threshold": 10, "statIntervalInMs": 1500`:                  window(10, 1500*time.Millisecond, 3),
		`"threshold": 10, "statIntervalInMs": 10000`:                 window(10, 10*time.Second, 20),
		`"threshold": 10, "statIntervalInMs": 10500`:                 fixed(10, 10500*time.Millisecond),
		`"threshold": 10, "statIntervalInMs": 60000`:                 fixed(10, time.Minute),
		`"threshold": 0`:                                             window(0, time.Second, 2),
		`"threshold": 10, "id": "orders-qps"`:                        with(second, func(r *flow.Rule) { r.Name = "orders-qps" }),
		`"threshold": 10, "id": "17"`:                                second,
		`"threshold": 10, "id": "a\nb"`:                              second,
		`"threshold": 10, "relationStrategy": 1, "refResource": "w"`: with(second, func(r *flow.Rule) { r.Related = "w" }),
		`"threshold": 10, "controlBehavior": 1`:                      queue(time.Second, 0),
		`"threshold": 10, "controlBehavior": 1, "maxQueueingTimeMs": 250, "statIntervalInMs": 2000`: queue(
			2*time.Second, 250*time.Millisecond),
		`"threshold": 10, "maxQueueingTimeMs": 250, "warmUpPeriodSec": 5, "refResource": "w"`: second, // without effect
		`"threshold": 10, "tokenCalculateStrategy": 1, "warmUpPeriodSec": 5`: with(second, func(r *flow.Rule) {
			r.WarmUp.Period = 5 * time.Second
		}),
		`"threshold": 10, "tokenCalculateStrategy": 1, "warmUpPeriodSec": 5, "warmUpColdFactor": 4, "controlBehavior": 1`: with(
			queue(time.Second, 0), func(r *flow.Rule) { r.WarmUp = flow.WarmUp{Period: 5 * time.Second, ColdFactor: 4} }),

		`"count": 10`: second,
		`"count": 10.0, "grade": 1, "limitApp": "", "strategy": 0, "id": 3, "app": "a", "clusterMode": false`: second,
		`"count": 10, "limitApp": "mobile"`:              with(second, func(r *flow.Rule) { r.Origin = "mobile" }),
		`"count": 10, "strategy": 1, "refResource": "w"`: with(second, func(r *flow.Rule) { r.Related = "w" }),
		`"count": 10, "controlBehavior": 1`:              with(second, func(r *flow.Rule) { r.WarmUp.Period = 10 * time.Second }),
		`"count": 10, "controlBehavior": 2`:              queue(time.Second, 500*time.Millisecond),
		`"count": 0.5, "controlBehavior": 2`:             with(queue(time.Second, 500*time.Millisecond), func(r *flow.Rule) { r.Limit = 0.5 }),
		`"count": 2, "controlBehavior": 3, "maxQueueingTimeMs": 1`: {
			Resource: "r", Limit: 2, Window: time.Second, Algorithm: flow.Throttle, MaxWait: time.Millisecond,
			WarmUp: flow.WarmUp{Period: 10 * time.Second},
		},
		`"count": 10, "controlBehavior": 3`:                    with(queue(time.Second, 500*time.Millisecond), func(r *flow.Rule) { r.WarmUp.Period = 10 * time.Second }),
		`"count": 10, "regex": true`:                           with(second, func(r *flow.Rule) { r.Resource, r.Match = "", "~^(?:r)$" }),
		`"count": 10, "metricType": 1`:                         second,
		`"count": 10, "metricType": 1, "limitOrigin": "batch"`: with(second, func(r *flow.Rule) { r.Origin = "batch" }),
		`"count": 10, "metricType": 1, "controlBehavior": 3, "warmUpPeriodSec": 7, "warmUpColdFactor": 2, "maxQueueingTimeMs": 9`: with(
			queue(time.Second, 9*time.Millisecond), func(r *flow.Rule) { r.WarmUp = flow.WarmUp{Period: 7 * time.Second, ColdFactor: 2} }),
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertFields(t, fields)
			assert.Equal(t, []flow.Rule{want}, rules)
			assert.Empty(t, findings)
		})
	}
}

func TestFlowRulesThatCannotBeConvertedAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"controlBehavior": 0`:                           `f:1:2: rule on "r": left out: there is neither a threshold (Go) nor a count (Java)`,
		`"threshold": null`:                              `f:1:2: rule on "r": left out: there is neither a threshold`,
		`"threshold": "ten"`:                             `f:1:33: rule on "r": left out: threshold is "ten": must be a number`,
		`"threshold": -1`:                                `f:1:33: rule on "r": left out: threshold is -1: must be a number from 0`,
		`"threshold": 1e400`:                             `f:1:33: rule on "r": left out: threshold is 1e400: must be a number from 0`,
		`"threshold": 2e9`:                               `f:1:2: rule on "r": left out: as a rule here, limit is 2e+09: must be from 0`,
		`"threshold": 10, "threshold": 20`:               `f:1:37: rule on "r": left out: the field "threshold" is given twice`,
		`"threshold": 1, "statIntervalInMs": 4000000000`: `f:1:2: rule on "r": left out: as a rule here, window is`,
		`"threshold": 1, "statIntervalInMs": 1.5`:        `f:1:56: rule on "r": left out: statIntervalInMs is 1.5: must be a whole number`,
		`"threshold": 1, "tokenCalculateStrategy": 2`:    `left out: Sentinel ignores a rule of tokenCalculateStrategy 2 unless`,
		`"threshold": 1, "tokenCalculateStrategy": 2, "lowMemUsageThreshold": 900, "highMemUsageThreshold": 100, ` +
			`"memLowWaterMarkBytes": 1000, "memHighWaterMarkBytes": 2000`: `left out: its threshold follows the bytes of memory in use ` +
			`(tokenCalculateStrategy 2), here a limit follows the share of what the process may use: write limit: 900 with ` +
			`follow: {signal: memory, from: 1000/M, to: 2000/M, least: 100}, each /M worked out`,
		`"tokenCalculateStrategy": 2, "lowMemUsageThreshold": 90, "highMemUsageThreshold": 10, "memLowWaterMarkBytes": 5, "memHighWaterMarkBytes": 6`: `write limit: 90 with follow`,
		`"threshold": 1, "tokenCalculateStrategy": 3`:                                     `left out: tokenCalculateStrategy is 3, which Sentinel does not know`,
		`"threshold": 1, "tokenCalculateStrategy": 1`:                                     `left out: Sentinel ignores a rule that warms up without warmUpPeriodSec`,
		`"threshold": 1, "controlBehavior": 2`:                                            `left out: controlBehavior is 2, which Sentinel does not know`,
		`"threshold": 1, "relationStrategy": 1`:                                           `left out: Sentinel ignores a rule on a related resource without refResource`,
		`"threshold": 1, "relationStrategy": 2`:                                           `left out: relationStrategy is 2`,
		`"threshold": 1, "relationStrategy": 1, "refResource": 5`:                         `left out: refResource is 5: must be text`,
		`"threshold": 1, "controlBehavior": 1, "relationStrategy": 1, "refResource": "w"`: `left out: a rule that queues does not look at the related resource "w" (relationStrategy 1)`,
		`"count": 1, "grade": 2`:                                                          `left out: grade is 2, which Sentinel does not know`,
		`"count": 1, "strategy": 2, "refResource": "web"`:                                 `left out: it counts the calls that come by the entrance "web" (strategy 2, chain)`,
		`"count": 1, "clusterMode": true`:                                                 `left out: it is a limit of the whole cluster (clusterMode)`,
		`"count": 1, "clusterMode": "yes"`:                                                `left out: clusterMode is "yes": must be true or false`,
		`"count": 1, "controlBehavior": 2, "maxQueueingTimeMs": 0`:                        `left out: Sentinel ignores a rule that queues with maxQueueingTimeMs 0`,
		`"count": 1, "controlBehavior": 1, "warmUpPeriodSec": 0`:                          `left out: Sentinel ignores a rule that warms up without`,
		`"count": 1, "controlBehavior": 4`:                                                `left out: controlBehavior is 4, which Sentinel does not know`,
		`"count": 1, "regex": true, "controlBehavior": 1`:                                 `left out: Sentinel ignores a rule with regex whose controlBehavior is not 0`,
		`"threshold": 1, "relationStrategy": 1, "refResource": "a\u0007b"`:                `left out: as a rule here, related`,
		`"threshold": 1, "controlBehavior": 1, "maxQueueingTimeMs": 4000000000`:           `left out: as a rule here, maxWait`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertFields(t, fields)
			assert.Empty(t, rules)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestUnknownFieldsAreLeftOutOfTheirRule(t *testing.T) {
	rules, findings := convertFields(t, `"count": 1, "thresholds": 2`)
	assert.Len(t, rules, 1)
	assert.Equal(t, []string{
		`f:1:32: rule on "r": left out: the field "thresholds": flow rules of Sentinel for Java have none of that name`,
	}, findings)
}

func TestFlowRulesThatBehaveDifferentlyAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"threshold": 2.5`:                       `f:1:33: rule on "r": differs: Sentinel lets 2 pass in 1s; here the fraction adds up`,
		`"count": 0.5`:                           `Sentinel lets 0 pass in 1s`,
		`"threshold": 0.5, "controlBehavior": 1`: `Sentinel blocks every call for a threshold below 1 that throttles; here 0.5 pass in 1s`,
		`"threshold": 2, "controlBehavior": 1, "tokenCalculateStrategy": 1, "warmUpPeriodSec": 5`: `and so never warms up`,
		`"count": 2, "controlBehavior": 1`: `and so never warms up`,
		`"threshold": 5, "statIntervalInMs": 5000, "tokenCalculateStrategy": 1, "warmUpPeriodSec": 5`: `Sentinel warms up as though the threshold were per second`,
		`"threshold": 5, "statIntervalInMs": 60000, "relationStrategy": 1, "refResource": "w"`:        `Sentinel counts the calls of the guarded resource for this interval; here those of "w" are counted`,
		`"threshold": 5, "regex": true`:   `in sentinel-golang the counter of a pattern sees no calls`,
		`"count": 5, "limitApp": "other"`: `in Sentinel each caller that no rule names has a limit of its own`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertFields(t, fields)
			assert.Len(t, rules, 1)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], "differs: ")
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestFilesThatAreNotListsAreUnreadable(t *testing.T) {
	for data, want := range map[string]string{
		"":                    "f:1:1: unreadable: the file cannot be read as JSON: unexpected end of JSON input",
		"[{\n  \"count\": x]": "f:2:12: unreadable: the file cannot be read as JSON: invalid character 'x'",
		"[]\n[]":              "f:2:1: unreadable: the file cannot be read as JSON: invalid character '['",
		"\n {\"rules\": []}":  "f:2:2: unreadable: the file holds an object: must be a list of rules",
		"null":                "f:1:1: unreadable: the file holds null: must be a list",
		"- resource: a\n":     "f:1:1: unreadable: the file cannot be read as JSON: it begins with neither [ nor {",
		"# a\nflow: []\n":     "f:1:1: unreadable: the file cannot be read as JSON: it begins with neither [ nor {",
		strings.Repeat("[", 30) + strings.Repeat("]", 30): "f:1:22: unreadable: the file cannot be read as JSON: lists and objects are nested too deep",
	} {
		c := convert.Convert(convert.File{Name: "f", Data: []byte(data)})
		require.Len(t, c.Findings, 1, data)
		assert.True(t, c.Has(convert.Unreadable), data)
		assert.Contains(t, c.Findings[0].String(), want)
	}
}

func TestFindingsAreInTheOrderOfTheFile(t *testing.T) {
	c := convert.Convert(
		convert.File{Name: "one", Data: []byte("\ufeff[\n  {\"resource\": \"日本\", \"count\": true},\r\n  7,\n  {\"foo\": 1, \"count\": 1}]")},
		convert.File{Name: "two", Data: []byte("[")},
	)
	var places []string
	for _, f := range c.Findings {
		place, _, _ := strings.Cut(f.String(), ": ")
		places = append(places, place)
	}
	assert.Equal(t, []string{"one:2:31", "one:3:3", "one:4:3", "one:4:4", "two:1:1"}, places)
}

func TestNamesAreUnique(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(`[
		{"resource": "a", "count": 1}, {"resource": "a", "count": 2}, {"resource": "a-2", "count": 3},
		{"resource": "a", "threshold": 4, "id": "a-3"}, {"resource": "a", "count": 5}, {"resource": "b", "threshold": 6, "id": "a"}
	]`)})
	require.NoError(t, c.Rules.Validate())
	var names []string
	for _, rule := range rules.NewTable().WithRules(c.Rules, c.Rules.All()).Flow {
		names = append(names, rule.Name)
	}
	assert.Equal(t, []string{"a", "a-4", "a-2", "a-3", "a-5", "a-6"}, names)
}

func TestLongNamesAreShortenedForTheirNumber(t *testing.T) {
	rule := `{"resource": "` + strings.Repeat("é", 512) + `", "count": 1}`
	c := convert.Convert(convert.File{Name: "f", Data: []byte("[" + rule + "," + rule + "]")})
	require.NoError(t, c.Rules.Validate())
	assert.Equal(t, strings.Repeat("é", 511)+"-2", c.Rules.Flow[1].Name)
}

func TestPatternsThatMatchResourcesWithRulesAreReported(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(
		`[{"resource": "/u/.*", "count": 1, "regex": true}, {"resource": "/u/a", "count": 2}, {"resource": "x/u/a", "count": 2}]`)})
	require.Len(t, c.Findings, 1)
	assert.Equal(t, convert.Differs, c.Findings[0].Kind)
	assert.Contains(t, c.Findings[0].Message, `here it also applies to "/u/a"`)
}

func TestTheDocumentListsWhatIsMissing(t *testing.T) {
	list := `{"resource": "kept", "count": 1}` + strings.Repeat(`,{"resource": "a\u001b[31m\u2028b", "grade": 1, "count": -1}`, 102)
	c := convert.Convert(convert.File{Name: "evil\nname", Data: []byte("[" + list + "]")})
	document, err := c.YAML()
	require.NoError(t, err)
	lines := strings.Split(string(document), "\n")
	comments := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, "#") })
	assert.Len(t, comments, 1+1+1+100+1)
	assert.Equal(t, "#   and 2 more", comments[len(comments)-1])
	assert.Contains(t, string(document), "\nflow:\n  - resource: kept\n")
}

// TestConvertingManyRulesCostsNoMoreForEach counts allocations: those for a rule do not
// grow with the number of rules.
func TestConvertingManyRulesCostsNoMoreForEach(t *testing.T) {
	cost := func(n int) float64 {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, `,{"resource":"r%d","count":3}`, i)
		}
		file := convert.File{Name: "many", Data: []byte("[" + list.String()[1:] + "]")}
		return testing.AllocsPerRun(1, func() {
			conversion := convert.Convert(file)
			if len(conversion.Rules.Flow) != n || len(conversion.Findings) > 0 {
				t.Errorf("%d rules and %d findings of %d rules", len(conversion.Rules.Flow), len(conversion.Findings), n)
			}
		}) / float64(n)
	}
	few, many := cost(1_000), cost(10_000)
	assert.Less(t, few, 40.0)
	assert.InDelta(t, few, many, 5)
}

func TestInvalidRulesAreFoundAmongMany(t *testing.T) {
	var list []string
	for i := range 100 {
		count := "3"
		if i%7 == 3 {
			count = "2000000000"
		}
		list = append(list, fmt.Sprintf(`{"resource": "r%d", "count": %s}`, i, count))
	}
	conversion := convert.Convert(convert.File{Name: "many", Data: []byte("[" + strings.Join(list, ",\n") + "]")})
	assert.Len(t, conversion.Rules.Flow, 86)
	require.Len(t, conversion.Findings, 14)
	for i, f := range conversion.Findings {
		assert.Equal(t, 7*i+4, f.Line)
		assert.Contains(t, f.String(), fmt.Sprintf(`rule on "r%d": left out: as a rule here, limit is 2e+09`, 7*i+3))
	}
}
