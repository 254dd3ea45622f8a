package convert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
)

func TestConvertedGatewayRulesDoTheSame(t *testing.T) {
	restricted := func(param, key string) hotparam.Rule {
		return hot(param, func(r *hotparam.Rule) { r.Limit, r.Values = hotparam.MaxLimit, values(key, 10) })
	}
	for fields, want := range map[string]hotparam.Rule{
		`"paramItem": {"parseStrategy": 0}`:                          hot("ip", nil),
		`"paramItem": {}`:                                            hot("ip", nil),
		`"paramItem": {"parseStrategy": 1}`:                          hot("host", nil),
		`"paramItem": {"parseStrategy": 2, "fieldName": "X-Tenant"}`: hot("header:X-Tenant", nil),
		`"paramItem": {"parseStrategy": 3, "fieldName": "pa"}`:       hot("query:pa", nil),
		`"paramItem": {"parseStrategy": 4, "fieldName": "sid"}`:      hot("cookie:sid", nil),
		`"paramItem": {"parseStrategy": 0, "fieldName": null, "pattern": null, "index": 0, "matchStrategy": 0}`: hot("ip", nil),
		`"paramItem": {"parseStrategy": 0, "pattern": ""}`:                                                      hot("ip", nil),
		`"paramItem": {"parseStrategy": 0}, "resourceMode": 1, "burst": 5`:                                      hot("ip", func(r *hotparam.Rule) { r.Burst = 15 }),
		`"paramItem": {"parseStrategy": 0}, "intervalSec": 60`:                                                  hot("ip", func(r *hotparam.Rule) { r.Window = time.Minute }),
		`"paramItem": {"parseStrategy": 0}, "interval": 2, "intervalUnit": 0`:                                   hot("ip", func(r *hotparam.Rule) { r.Window = 2 * time.Second }),
		`"paramItem": {"parseStrategy": 0}, "interval": 2, "intervalUnit": 2`:                                   hot("ip", func(r *hotparam.Rule) { r.Window = 2 * time.Hour }),
		`"paramItem": {"parseStrategy": 0}, "intervalSec": 7, "interval": 1, "intervalUnit": 3`:                 hot("ip", func(r *hotparam.Rule) { r.Window = 24 * time.Hour }),
		`"paramItem": {"parseStrategy": 0}, "controlBehavior": 2`: hot("ip", func(r *hotparam.Rule) {
			r.Algorithm, r.MaxWait = hotparam.Throttle, 500*time.Millisecond
		}),
		`"paramItem": {"parseStrategy": 0}, "grade": 0`: hot("ip", func(r *hotparam.Rule) { r.Limit, r.Window, r.Concurrency = 0, 0, 10 }),

		`"paramItem": {"parseStrategy": 2, "fieldName": "T", "pattern": "acme"}`:                    restricted("header:T", "acme"),
		`"paramItem": {"parseStrategy": 2, "fieldName": "T", "pattern": "a*", "matchStrategy": 0}`:  restricted("header:T", `a\*`),
		`"paramItem": {"parseStrategy": 3, "fieldName": "T", "pattern": "a.*", "matchStrategy": 2}`: restricted("query:T", "~^(?:a.*)$"),
		`"paramItem": {"parseStrategy": 4, "fieldName": "T", "pattern": "?a", "matchStrategy": 3}`:  restricted("cookie:T", `*\?a*`),
		`"paramItem": {"parseStrategy": 1, "pattern": "shop.example", "matchStrategy": 0}`:          restricted("host", "shop.example"),
		`"paramItem": {"parseStrategy": 0, "pattern": "a", "matchStrategy": 3}, "grade": 0`: hot("ip", func(r *hotparam.Rule) {
			r.Limit, r.Window, r.Concurrency, r.Values = 0, 0, 1_000_000, values("*a*", 10)
		}),
		`"paramItem": {"parseStrategy": 0, "pattern": "a", "matchStrategy": 3}, "controlBehavior": 2, "maxQueueingTimeoutMs": 9`: hot("ip", func(r *hotparam.Rule) {
			r.Limit, r.Algorithm, r.MaxWait, r.Values = 10_000_000, hotparam.Throttle, 9*time.Millisecond, values("*a*", 10)
		}),
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, `"count": 10, `+fields)
			assert.Equal(t, []hotparam.Rule{want}, rules.HotParam)
			assert.Empty(t, findings)
			assert.Equal(t, 1, rules.Len())
		})
	}
}

func TestGatewayRulesForAllCallsLimitTheResource(t *testing.T) {
	bucket := flow.Rule{Resource: "r", Limit: 10, Window: time.Second, Algorithm: flow.TokenBucket}
	for fields, want := range map[string]flow.Rule{
		`"intervalSec": 1, "count": 10`:                                   bucket,
		`"resourceMode": 0, "count": 10.9`:                                bucket,
		`"resourceMode": 0, "count": 10, "controlBehavior": 1`:            bucket, // Sentinel knows 0 and 2
		`"intervalSec": 60, "count": 0, "burst": 5`:                       {Resource: "r", Window: time.Minute, Algorithm: flow.TokenBucket},
		`"intervalSec": 60, "count": 10, "burst": 5`:                      {Resource: "r", Limit: 10, Window: time.Minute, Algorithm: flow.TokenBucket, Burst: 15},
		`"intervalSec": 1, "count": 10, "controlBehavior": 2`:             {Resource: "r", Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond},
		`"maxQueueingTimeoutMs": 7, "count": 10, "controlBehavior": 2`:    {Resource: "r", Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 7 * time.Millisecond},
		`"intervalSec": 1, "count": 10, "burst": 5, "controlBehavior": 2`: {Resource: "r", Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond},
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertFields(t, fields)
			assert.Equal(t, []flow.Rule{want}, rules)
			assert.Empty(t, findings)
		})
	}
	rules, findings := convertRule(t, `"resourceMode": 0, "grade": 0, "count": 10`)
	assert.Equal(t, []isolation.Rule{{Resource: "r", Limit: 10}}, rules.Isolation)
	assert.Empty(t, findings)
}

func TestGatewayRulesThatCannotBeConvertedAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"count": 1, "intervalSec": 0`:                                                           `left out: Sentinel ignores a rule whose intervalSec is missing or 0`,
		`"count": 1, "interval": 0, "intervalUnit": 1`:                                           `left out: Sentinel ignores a rule whose interval is missing or 0`,
		`"count": 1, "interval": 1, "intervalUnit": 4`:                                           `left out: intervalUnit is 4, which Sentinel does not know`,
		`"count": 1, "interval": 4000000000, "intervalUnit": 3`:                                  `left out: as a rule here, window is`,
		`"count": 1, "resourceMode": 2`:                                                          `left out: resourceMode is 2, which Sentinel does not know`,
		`"count": 1, "intervalSec": 1, "clusterMode": true`:                                      `left out: it is a limit of the whole cluster (clusterMode)`,
		`"count": 1, "intervalSec": 1, "grade": 3`:                                               `left out: grade is 3, which Sentinel does not know`,
		`"intervalSec": 1`:                                                                       `left out: there is neither a threshold (Go) nor a count (Java)`,
		`"count": 1, "paramItem": 5`:                                                             `left out: 5 is no rule: must be an object`,
		`"count": 1, "paramItem": {"parseStrategy": 5}`:                                          `left out: parseStrategy is 5, which Sentinel does not know`,
		`"count": 1, "paramItem": {"parseStrategy": 2}`:                                          `left out: Sentinel ignores a rule for a header, a URL parameter or a cookie without fieldName`,
		`"count": 1, "paramItem": {"parseStrategy": 0, "pattern": "a", "matchStrategy": 4}`:      `left out: matchStrategy is 4, which Sentinel does not know`,
		`"count": 1, "paramItem": {"parseStrategy": 0, "pattern": "(?=a)b", "matchStrategy": 2}`: `left out: the pattern "(?=a)b" is no regular expression of Go: write another one`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Empty(t, rules)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestGatewayRulesThatBehaveDifferentlyAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"paramItem": {"parseStrategy": 0, "pattern": "10.", "matchStrategy": 1}`:                              `Sentinel ignores a pattern with matchStrategy 1 (prefix) and limits every value; here only values that begin with "10." have the limit`,
		`"paramItem": {"parseStrategy": 0, "pattern": "10.", "matchStrategy": 3}, "burst": 5`:                  `in Sentinel a value may save 5 more than the threshold; here no more than the threshold`,
		`"paramItem": {"parseStrategy": 1, "pattern": "Shop.example"}`:                                         `no host is like "Shop.example" here`,
		`"paramItem": {"parseStrategy": 0, "pattern": "2001:db8::7"}`:                                          `an IPv6 client is its network here, such as 2001:db8:1:2::/64, and is never like "2001:db8::7"`,
		`"paramItem": {"parseStrategy": 1, "pattern": "shop:80"}`:                                              `no host is like "shop:80" here`,
		`"paramItem": {"parseStrategy": 0}, "controlBehavior": 2, "intervalSec": 1, "burst": 1, "count": 1001`: `Sentinel throttles nothing here`,
	} {
		t.Run(fields, func(t *testing.T) {
			if fields[len(fields)-4:] != "1001" {
				fields += `, "count": 10`
			}
			rules, findings := convertRule(t, fields)
			assert.Len(t, rules.HotParam, 1)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], "differs: ")
			assert.Contains(t, findings[0], want)
		})
	}
}

func TestUnknownFieldsOfGatewayRulesAreReported(t *testing.T) {
	_, findings := convertRule(t, `"count": 1, "paramItem": {"parseStrategy": 0, "field": "x"}, "limitApp": "default"`)
	require.Len(t, findings, 2)
	assert.Contains(t, findings[0], `left out: the field "field": paramItems of Sentinel for Java have none of that name`)
	assert.Contains(t, findings[1], `left out: the field "limitApp": gateway rules of Sentinel for Java have none of that name`)
}
