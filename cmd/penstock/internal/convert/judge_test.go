package convert_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
)

func convertFile(data string) convert.Conversion {
	return convert.Convert(convert.File{Name: "f", Data: []byte(data)})
}

// Sentinel-golang 0.6.1 and 0.6.2 have fields of version 0 and of version 1.
func TestFlowRulesOfVersion06AreConverted(t *testing.T) {
	second := flow.Rule{Resource: "r", Limit: 10, Window: time.Second, Buckets: 2}
	related, warming := second, second
	related.Related = "w"
	warming.WarmUp = flow.WarmUp{Period: 7 * time.Second, ColdFactor: 2}
	for fields, want := range map[string]flow.Rule{
		`"metricType": 1, "tokenCalculateStrategy": 0, "controlBehavior": 0, "count": 10`:                              second,
		`"metricType": 1, "tokenCalculateStrategy": 0, "count": 10, "relationStrategy": 1, "refResource": "w"`:         related,
		`"metricType": 1, "tokenCalculateStrategy": 1, "count": 10, "warmUpPeriodSec": 7, "warmUpColdFactor": 2`:       warming,
		`"metricType": 0, "tokenCalculateStrategy": 0, "controlBehavior": 1, "count": 10, "maxQueueingTimeMs": 50`:     {Resource: "r", Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 50 * time.Millisecond},
		`"id": 12, "metricType": 1, "tokenCalculateStrategy": 0, "count": 10, "controlBehavior": 0, "refResource": ""`: second,
	} {
		rules, findings := convertFields(t, fields)
		assert.Equal(t, []flow.Rule{want}, rules, fields)
		assert.Empty(t, findings, fields)
	}
	c := convertFile(`[{"resource": "r", "tokenCalculateStrategy": 0, "count": 3}]`)
	assert.Equal(t, []isolation.Rule{{Resource: "r", Limit: 3}}, c.Rules.Isolation, "without metricType it is the calls under way")
	for _, fields := range []string{`"tokenCalculateStrategy": 2`, `"controlBehavior": 2`, `"metricType": 2`, `"metricType": 0, "tokenCalculateStrategy": 1`} {
		c := convertFile(`[{"resource": "r", "tokenCalculateStrategy": 0, "count": 3, ` + fields + `}]`)
		assert.True(t, c.Has(convert.LeftOut), fields)
		assert.Empty(t, append(c.Rules.Flow, flow.Rule{})[1:], fields)
	}
}

func TestRuleWithoutAnUnderstoodLimitIsNeverWritten(t *testing.T) {
	for _, limit := range []string{"", `"count": null,`, `"count": "many",`, `"count": [],`, `"threshold": null,`, `"threshold": "NaN",`, `"threshold": "1e999",`, `"count": "-",`, `"qpsThreshold": 3,`} {
		for _, fields := range []string{
			`"grade": 1`, `"tokenCalculateStrategy": 0, "controlBehavior": 0`, `"metricType": 1`, `"metricType": 0`, `"statIntervalInMs": 1000`,
			`"strategy": 1, "retryTimeoutMs": 1000, "statIntervalMs": 1000`, `"grade": 2, "timeWindow": 5`, `"paramIdx": 0`, `"paramIndex": 0, "durationInSec": 1`,
			`"resourceMode": 0, "intervalSec": 1`, `"paramItem": {"parseStrategy": 0}`, `"limitOrigin": "a"`, `"metricType": 4`,
		} {
			c := convertFile(`[{"resource": "r", ` + limit + fields + `}]`)
			document, err := c.YAML()
			require.NoError(t, err)
			assert.NotContains(t, string(document), "limit:", limit+fields)
			assert.NotContains(t, string(document), "resource:", limit+fields)
			assert.True(t, c.Has(convert.LeftOut), limit+fields)
		}
	}
	c := convertFile(`[{"resource": "r", "statIntervalInMs": 1000, "tokenCalculateStrategy": 0, "threshold": null, "count": 5}]`)
	assert.Empty(t, c.Rules.Flow, "the count of version 0.6 has no interval")
	assert.Empty(t, c.Rules.Isolation)
}

func TestRulesThatAreSwitchedOffAreNotWritten(t *testing.T) {
	for field, off := range map[string]bool{
		`"enabled": false`: true, `"enabled": "false"`: true, `"enable": false`: true, `"isEnabled": 0`: true, `"disabled": true`: true, `"ENABLED": false`: true,
		`"enabled": true`: false, `"disabled": false`: false, `"enable": 1`: false, `"disabled": "false"`: false,
	} {
		for _, rest := range []string{`"count": 5`, `"threshold": 5`, `"grade": 2, "count": 5, "timeWindow": 5`, `"limitApp": "a", "strategy": 0`} {
			c := convertFile(`[{"resource": "r", ` + rest + `, ` + field + `}]`)
			document, err := c.YAML()
			require.NoError(t, err)
			assert.Equal(t, off, !strings.Contains(string(document), "resource: r"), "%s, %s: %v", rest, field, c.Findings)
			assert.False(t, c.Has(convert.LeftOut))
			assert.Equal(t, off, c.Has(convert.Understood))
		}
	}
	c := convertFile(`[{"resource": "r", "count": 5, "enabled": "perhaps"}]`)
	assert.Empty(t, c.Rules.Flow)
	assert.True(t, c.Has(convert.LeftOut))
}

func TestFieldsThatNothingReadsDoNotStopAFile(t *testing.T) {
	c := convertFile(`[{"resource": "r", "count": 5, "description": "x", "gmtCreate": 1, "team": {"a": 1}, "burst": 0, "extension": "a"}]`)
	require.Len(t, c.Rules.Flow, 1)
	require.Len(t, c.Findings, 3)
	assert.False(t, c.Has(convert.LeftOut))
	assert.Contains(t, c.Findings[0].String(), `understood: the field "team": flow rules of Sentinel for Java have none of that name and ignore it`)
	c = convertFile(`[{"resource": "r", "count": 5, "controlBehaviour": 2}]`)
	assert.Contains(t, c.Findings[0].String(), `left out: the field "controlBehaviour": flow rules of Sentinel for Java have none of that name`)
}

// What the parsers of Sentinel for Java take is read.
func TestFilesAreReadAsSentinelReadsThem(t *testing.T) {
	rule := `{"resource": "r", "count": 5, "grade": 1}`
	quoted, err := json.Marshal("[" + rule + "]")
	require.NoError(t, err)
	for name, file := range map[string]string{
		"numbers as text": `[{"resource": "r", "count": "5", "grade": " 1 ", "clusterMode": "false"}]`,
		"comments":        "// rules\n[/* one */ " + rule + " // end\n] // end",
		"trailing commas": `[{"resource": "r", "count": 5,},]`,
		"single quotes":   `[{'resource': 'r', "count": 5}]`,
		"bare names":      `[{resource: "r", count: 5}]`,
		"one object":      rule,
		"dashboard":       `{"success": true, "code": 0, "msg": "ok", "data": [{"id": 3, "app": "a", "ip": "1.2.3.4", "port": 1, "resource": "r", "limitApp": "default", "grade": 1, "count": 5.0, "strategy": 0, "refResource": null, "controlBehavior": 0, "warmUpPeriodSec": null, "maxQueueingTimeMs": null, "clusterMode": false, "clusterConfig": null, "gmtCreate": "2020", "gmtModified": null}]}`,
		"Nacos search":    `{"totalCount": 1, "pageNumber": 1, "pageItems": [{"id": "7", "dataId": "a-flow-rules", "group": "SENTINEL_GROUP", "content": ` + string(quoted) + `, "type": "json"}]}`,
		"Nacos value":     `{"code": 0, "message": "success", "data": ` + string(quoted) + `}`,
		"config map":      `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"flow": ` + string(quoted) + `, "degrade": "[]"}, "metadata": {"name": "x"}}`,
		"wrapped":         `[{"id": 1, "rule": ` + rule + `}]`,
	} {
		c := convertFile(file)
		assert.Equal(t, []flow.Rule{{Resource: "r", Limit: 5, Window: time.Second, Buckets: 2}}, c.Rules.Flow, "%s: %v", name, c.Findings)
		assert.Empty(t, c.Findings, name)
	}
	for _, file := range []string{`[{"resource": "r" "count": 5}]`, `[,]`, `[{,}]`, `[1 2]`, `{"a": }`, `[{"resource": "r, "count": 5}]`, `[] x`, `/* [`, `[0x5]`, `[+5]`, `[.5]`, `["\q"]`, `[tru]`} {
		assert.True(t, convertFile(file).Has(convert.Unreadable) || convertFile(file).Has(convert.LeftOut), file)
	}
}

// What a registry has beside rules stops nothing; rules that cannot be read are not missed in silence.
func TestTextsOfARegistryAreRulesOrSaidToBeNone(t *testing.T) {
	rule := `{"resource": "r", "count": 5, "grade": 1}`
	quoted, err := json.Marshal("[" + rule + "]")
	require.NoError(t, err)
	c := convertFile(`{"pageItems": [{"dataId": "a-flow-rules", "content": ` + string(quoted) + `}, {"dataId": "a.yaml", "content": "server:\n  port: 1"}]}`)
	assert.Len(t, c.Rules.Flow, 1)
	require.Len(t, c.Findings, 1)
	assert.Equal(t, `f:1:110: understood: "a.yaml" is no JSON, as rules of Sentinel are, and is not read`, c.Findings[0].String())
	c = convertFile(`{"pageItems": [{"dataId": "a.yaml", "content": "a: 1\nresilience4j:\n  ratelimiter: {}"}]}`)
	require.Len(t, c.Findings, 1)
	assert.Contains(t, c.Findings[0].String(), `left out: "a.yaml" is no JSON, as rules of Sentinel are: convert it from a file of its own`)
	for _, file := range []string{
		`{"pageItems": [{"dataId": "a-flow-rules", "content": ` + string(quoted) + `}, {"dataId": "b", "content": "[{\"resource\": "}]}`,
		`{"kind": "ConfigMap", "data": {"flow": ` + string(quoted) + `, "degrade": "[{\"resource\": "}}`,
		`{"kind": "ConfigMap", "data": {"flow": ` + string(quoted) + `, "degrade": "{\"resource\": \"a\" \"count\": 1}"}}`,
	} {
		c := convertFile(file)
		assert.Len(t, c.Rules.Flow, 1)
		require.Len(t, c.Findings, 1, file)
		assert.Contains(t, c.Findings[0].String(), "left out: the text cannot be read as JSON: ")
	}
	c = convertFile(`{"kind": "ConfigMap", "data": {"flow": ` + string(quoted) + `, "pattern": "{level} {message}"}}`)
	assert.Len(t, c.Rules.Flow, 1)
	assert.Empty(t, c.Findings)
}

// A rule that does not tell its format has that of the others in its file.
func TestFileIsJudgedAsAWhole(t *testing.T) {
	isolated := []isolation.Rule{{Resource: "b", Limit: 7}}
	for name, file := range map[string]string{
		"0.6, concurrency": `[{"resource": "a", "metricType": 1, "tokenCalculateStrategy": 0, "count": 5}, {"resource": "b", "count": 7}]`,
		"0, concurrency":   `[{"resource": "b", "count": 7}, {"resource": "a", "metricType": 1, "count": 5}]`,
		"isolation":        `[{"resource": "b", "threshold": 7}, {"resource": "a", "metricType": 0, "threshold": 5}]`,
	} {
		assert.Contains(t, fmt.Sprint(convertFile(file).Rules.Isolation), fmt.Sprint(isolated[0]), name)
	}
	throttled := convertFile(`[{"resource": "a", "metricType": 1, "tokenCalculateStrategy": 0, "count": 5},
		{"resource": "b", "metricType": 1, "controlBehavior": 1, "maxQueueingTimeMs": 9, "count": 7}]`)
	require.Len(t, throttled.Rules.Flow, 2)
	assert.Equal(t, flow.Throttle, throttled.Rules.Flow[1].Algorithm, "controlBehavior 1 was to warm up before 0.6.1")
	mixed := convertFile(`[{"resource": "a", "grade": 1, "count": 5, "strategy": 0}, {"resource": "b", "count": 7}]`)
	assert.Len(t, mixed.Rules.Flow, 2)
	gateway := convertFile(`[{"resource": "a", "count": 5, "intervalSec": 2}, {"resource": "b", "count": 7}]`)
	require.Len(t, gateway.Rules.Flow, 2)
	assert.Equal(t, flow.TokenBucket, gateway.Rules.Flow[1].Algorithm)
}
