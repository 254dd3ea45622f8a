package convert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/rules"
)

// convertSystem converts a list of one rule without a resource, and returns the findings
// other than what all such rules do differently.
func convertSystem(fields string) (rules.Set, []string) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(`[{` + fields + `}]`)})
	var findings []string
	for _, f := range c.Findings {
		if f.Kind != convert.Differs {
			findings = append(findings, f.String())
		}
	}
	return c.Rules, findings
}

func TestConvertedSystemRulesDoTheSame(t *testing.T) {
	for fields, want := range map[string]adaptive.Rule{
		`"metricType": 4, "triggerCount": 0.8, "strategy": -1`:          {Strategy: adaptive.Threshold, CPU: 0.8},
		`"metricType": 4, "triggerCount": 0.8`:                          {Strategy: adaptive.Threshold, CPU: 0.8},
		`"metricType": 4, "triggerCount": 0.8, "strategy": 1`:           {Strategy: adaptive.Threshold, CPU: 0.8},
		`"metricType": 3, "triggerCount": 1000, "id": "all"`:            {Name: "all", Strategy: adaptive.Threshold, QPS: 1000},
		`"metricType": 2, "triggerCount": 99.5, "id": "3"`:              {Strategy: adaptive.Threshold, Concurrency: 100},
		`"MetricType": 1, "TriggerCount": 250, "name": "x"`:             {Strategy: adaptive.Threshold, AvgRT: 250 * time.Millisecond},
		`"highestCpuUsage": 0.7`:                                        {Strategy: adaptive.Threshold, CPU: 0.7},
		`"qps": 100.9`:                                                  {Strategy: adaptive.Threshold, QPS: 100},
		`"qps": -1, "avgRt": 50, "maxThread": 8, "highestCpuUsage": -1`: {Strategy: adaptive.Threshold, AvgRT: 50 * time.Millisecond, Concurrency: 8},
		`"id": 4, "app": "a", "ip": "::1", "port": 1, "limitApp": "default", "resource": null, "highestSystemLoad": -1.0,
		  "highestCpuUsage": 0.9, "avgRt": -1, "maxThread": -1, "qps": 2000`: {Strategy: adaptive.Threshold, CPU: 0.9, QPS: 2000},
	} {
		t.Run(fields, func(t *testing.T) {
			set, findings := convertSystem(fields)
			assert.Equal(t, []adaptive.Rule{want}, set.Adaptive)
			assert.Empty(t, findings)
			assert.Equal(t, 1, set.Len())
		})
	}
}

func TestSystemRulesThatCannotBeConvertedAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"metricType": 0, "triggerCount": 8`:              `f:1:36: left out: triggerCount is 8: here the load average is divided by the number of processors`,
		`"highestSystemLoad": 12`:                         `left out: highestSystemLoad is 12: here the load average is divided by the number of processors`,
		`"metricType": 5, "triggerCount": 1`:              `left out: metricType is 5, which Sentinel does not know`,
		`"metricType": 4, "triggerCount": 80`:             `left out: Sentinel ignores a CPU usage above 1, and triggerCount is 80`,
		`"metricType": 3, "triggerCount": 0`:              `left out: triggerCount is 0, for which Sentinel refuses nearly every inbound call`,
		`"metricType": 3, "triggerCount": -1`:             `left out: triggerCount is -1: must be a number from 0`,
		`"metricType": 2, "triggerCount": 1e9`:            `left out: as a rule here, concurrency is 1000000000: must be from 1 to 1000000`,
		`"metricType": 1, "triggerCount": 1e300`:          `left out: as a rule here, avgRT is`,
		`"maxThread": 0`:                                  `left out: maxThread is 0, for which Sentinel refuses nearly every inbound call`,
		`"maxThread": "eight"`:                            `left out: maxThread is "eight": must be a number`,
		`"highestSystemLoad": -1, "qps": -1, "avgRt": -1`: `left out: Sentinel does nothing for a system rule without a threshold`,
	} {
		t.Run(fields, func(t *testing.T) {
			set, findings := convertSystem(fields)
			assert.Empty(t, set)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestPartsOfSystemRulesAreLeftOut(t *testing.T) {
	set, findings := convertSystem(`"highestSystemLoad": 12, "highestCpuUsage": 1.5, "qps": 10, "rt": 3`)
	assert.Equal(t, []adaptive.Rule{{Strategy: adaptive.Threshold, QPS: 10}}, set.Adaptive)
	require.Len(t, findings, 3)
	assert.Contains(t, findings[0], `left out: highestSystemLoad is 12: here`)
	assert.Contains(t, findings[1], `left out: highestCpuUsage is 1.5: Sentinel ignores one above 1`)
	assert.Contains(t, findings[2], `the field "rt": system rules of Sentinel for Java have none of that name`)
}

func TestWhatSystemRulesDoDifferentlyIsReportedOnce(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(`[{"metricType": 4, "triggerCount": 0.8},
		{"metricType": 4, "triggerCount": 0.9}, {"metricType": 3, "triggerCount": 10}, {"maxThread": 3}]`)})
	var messages []string
	for _, f := range c.Findings {
		messages = append(messages, f.String())
	}
	require.Len(t, messages, 4)
	assert.Contains(t, messages[0], "0.8 is 80 %")
	assert.Contains(t, messages[1], "those of the lowest priority first")
	assert.Contains(t, messages[2], "2 buckets")
	assert.Contains(t, messages[3], "maxThread")
	names := make([]string, 0, 4)
	for _, r := range c.Rules.Adaptive {
		names = append(names, r.Name)
	}
	assert.Equal(t, []string{"", "inbound-2", "inbound-3", "inbound-4"}, names)
	document, err := c.YAML()
	require.NoError(t, err)
	assert.Contains(t, string(document), "strategy: threshold")
}
