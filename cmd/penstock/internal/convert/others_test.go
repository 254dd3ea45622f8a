package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

func hasKind(c convert.Conversion, kind convert.Kind) []string {
	var found []string
	for _, f := range c.Findings {
		if f.Kind == kind {
			found = append(found, f.String())
		}
	}
	return found
}

func TestNginxRatesAreConverted(t *testing.T) {
	for line, want := range map[string]flow.Rule{
		"limit_req zone=z;":                       {Limit: 10, Window: time.Second, Algorithm: flow.TokenBucket, Burst: 1},
		"limit_req zone=z burst=5 nodelay;":       {Limit: 10, Window: time.Second, Algorithm: flow.TokenBucket, Burst: 6},
		"limit_req zone=z burst=5;":               {Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond},
		"limit_req zone=z burst=5 delay=0;":       {Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond},
		"limit_req zone=z delay=5 burst=5;":       {Limit: 10, Window: time.Second, Algorithm: flow.TokenBucket, Burst: 6},
		"limit_req burst=5 zone=z;":               {Limit: 10, Window: time.Second, Algorithm: flow.Throttle, MaxWait: 500 * time.Millisecond},
		"limit_req_dry_run on; limit_req zone=z;": {Limit: 10, Window: time.Second, Algorithm: flow.TokenBucket, Burst: 1, Shadow: true},
	} {
		c := convertFile("limit_req_zone $server_name zone=z:1m rate=10r/s;\nserver { location /a { " + line + " } }")
		want.Resource = "/a"
		assert.Equal(t, []flow.Rule{want}, c.Rules.Flow, line)
		assert.Empty(t, hasKind(c, convert.LeftOut))
	}
	for key, param := range map[string]rule.Strings{
		"$binary_remote_addr": rule.StringsOf("ip"), "$remote_addr": rule.StringsOf("ip"), "$http_x_user": rule.StringsOf("header:x-user"),
		"$arg_id": rule.StringsOf("query:id"), "$cookie_sid": rule.StringsOf("cookie:sid"), "${host}": rule.StringsOf("host"),
		`"$binary_remote_addr$server_name"`: rule.StringsOf("host", "ip"), "$server_name": rule.StringsOf("host"), "$arg_a$arg_b": rule.StringsOf("query:a", "query:b"),
	} {
		c := convertFile("http { limit_conn_zone " + key + " zone=z:1m; limit_conn z 3; }")
		assert.Equal(t, []hotparam.Rule{{Resource: "nginx", Param: param, Concurrency: 3}}, c.Rules.HotParam, key)
	}
	c := convertFile("limit_conn_zone $server_name zone=z:1m; server { limit_conn z 3; server_name shop.example; }")
	assert.Equal(t, []isolation.Rule{{Resource: "shop.example", Limit: 3}}, c.Rules.Isolation)
}

func TestNginxLimitsThatAreNotUnderstoodAreNotWritten(t *testing.T) {
	for _, file := range []string{
		"limit_req zone=z;", "limit_req_zone $server_name zone=z:1m; limit_req zone=z;", "limit_req_zone $server_name zone=z:1m rate=10; limit_req zone=z;",
		"limit_req_zone $server_name zone=z:1m rate=0r/s; limit_req zone=z;", "limit_req_zone $server_name zone=z:1m rate=1.5r/s; limit_req zone=z;",
		"limit_req_zone $x zone=z:1m rate=1r/s; limit_req zone=z;", "limit_req_zone $server_name zone=z:1m rate=1r/s; limit_req zone=z burst=x;",
		"limit_req_zone $server_name zone=z:1m rate=1r/s; limit_req zone=z burst=9 delay=x;",
		"limit_req_zone $server_name zone=z:1m rate=1r/s; limit_req zone=z later=3;", "limit_conn_zone $host zone=z:1m; limit_conn z x;",
		"limit_conn_zone $host zone=z:1m; limit_conn z;", "limit_conn_zone $host zone=z:1m; limit_conn z 0;", "limit_conn z 5;",
		"limit_req_zone $server_name zone=z:1m rate=99999999999r/s; limit_req zone=z;",
	} {
		c := convertFile(file)
		assert.NotEmpty(t, hasKind(c, convert.LeftOut), file)
		document, err := c.YAML()
		require.NoError(t, err)
		assert.NotContains(t, string(document), "resource:", file)
	}
	for _, file := range []string{"limit_req zone=z", "http { limit_req zone=z;", "limit_req zone=z; }", "{ limit_req zone=z; }"} {
		c := convertFile(file)
		assert.True(t, c.Has(convert.Unreadable), file)
	}
}

func TestEnvoyDescriptorsAreJudgedTogether(t *testing.T) {
	c := convertFile(`
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: SECOND, requests_per_unit: 10}
  - key: user
    value: "7"
    rate_limit: {unit: second, requests_per_unit: 20}
  - key: user
    value: free
    rate_limit: {unlimited: true}
`)
	assert.Empty(t, hasKind(c, convert.LeftOut))
	text := rule.String
	assert.Equal(t, []hotparam.Rule{{
		Resource: "shop", Param: rule.StringsOf("user"), Limit: 10, Window: time.Second, Algorithm: hotparam.SlidingWindow,
		Values: rule.NumberMapOf(rule.NumberEntry{Key: text("7"), Value: 20}, rule.NumberEntry{Key: text("free"), Value: hotparam.MaxLimit}),
	}}, c.Rules.HotParam)
}

func TestEnvoyDescriptorsWithoutALimitAreTold(t *testing.T) {
	c := convertFile(`
domain: shop
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 10}
    descriptors:
      - key: vip
        rate_limit: {unlimited: true}
`)
	assert.Empty(t, hasKind(c, convert.LeftOut))
	assert.Len(t, c.Rules.HotParam, 1)
	assert.Contains(t, fmt.Sprint(hasKind(c, convert.Differs)), "7:9: rule on \"shop\": differs: unlimited: in Envoy requests with these keys")
}

func TestEnvoyLimitsThatAreNotUnderstoodAreNotWritten(t *testing.T) {
	for _, descriptor := range []string{
		"{key: a, rate_limit: {unit: second}}", "{key: a, rate_limit: {requests_per_unit: 3}}", "{key: a, rate_limit: {unit: fortnight, requests_per_unit: 3}}",
		"{key: a, rate_limit: {unit: second, requests_per_unit: many}}", "{key: a, rate_limit: 5}", "{rate_limit: {unit: second, requests_per_unit: 3}}",
		"{key: a, rate_limit: {unit: second, requests_per_unit: -3}}", "5",
	} {
		c := convertFile("domain: d\ndescriptors:\n- " + descriptor)
		assert.Empty(t, c.Rules.HotParam, descriptor)
		assert.NotEmpty(t, hasKind(c, convert.LeftOut), descriptor)
	}
	c := convertFile("descriptors:\n- {key: a, rate_limit: {unit: second, requests_per_unit: 3}}")
	assert.Empty(t, c.Rules.HotParam)
	assert.NotEmpty(t, hasKind(c, convert.LeftOut), "there is no domain")
	c = convertFile(`{"domain": "d", "descriptors": [{"key": "a", "rate_limit": {"unit": "second", "requests_per_unit": 3}}]}`)
	assert.Len(t, c.Rules.HotParam, 1)
	assert.True(t, convertFile("domain: d\ndescriptors: [").Has(convert.Unreadable))
}

func TestEnvoyWeeksMonthsAndYearsAreWindowsOfDays(t *testing.T) {
	for unit, days := range map[string]int{"week": 7, "MONTH": 30, "Year": 365} {
		c := convertFile("domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: " + unit + ", requests_per_unit: 3}}")
		assert.Empty(t, hasKind(c, convert.LeftOut), unit)
		assert.Equal(t, []hotparam.Rule{{
			Resource: "d", Param: rule.StringsOf("a"), Limit: 3, Algorithm: hotparam.FixedWindow,
			Calendar: rule.Calendar{Period: rule.Period{Count: days, Unit: rule.Day}, StartsAt: "1970-01-01"},
		}}, c.Rules.HotParam, unit)
	}
}

// Spring does not care how a name, or a value of an enumeration, is written.
func TestResilience4jNamesAreReadAsSpringDoes(t *testing.T) {
	for _, fields := range []string{
		"{slidingWindowType: TIME_BASED, slidingWindowSize: 30}", "{sliding-window-type: time-based, sliding_window_size: 30}",
		"{SLIDING_WINDOW_TYPE: timeBased, slidingwindowsize: 30}",
	} {
		c := convertFile("resilience4j.circuitbreaker.instances: {in-1: " + fields + "}")
		assert.Empty(t, hasKind(c, convert.LeftOut), fields)
		require.Len(t, c.Rules.Breaker, 1, fields)
		assert.Equal(t, 30*time.Second, c.Rules.Breaker[0].Window, fields)
		assert.Equal(t, "in-1", c.Rules.Breaker[0].Resource, fields)
	}
}

func TestFilesThatNginxIncludesAreNamed(t *testing.T) {
	c := convertFile("http { include /etc/nginx/mime.types; limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\n" +
		"server { limit_req zone=a; include conf.d/limits.conf; } }")
	assert.Len(t, c.Rules.HotParam, 1)
	found := fmt.Sprint(hasKind(c, convert.Differs))
	assert.Contains(t, found, "conf.d/limits.conf")
	assert.NotContains(t, found, "mime.types")
}

func TestResilience4jInstancesAreConverted(t *testing.T) {
	c := convertFile(`
resilience4j.ratelimiter.instances.a: {limit-for-period: 5, limitRefreshPeriod: 2s, timeoutDuration: 0s}
resilience4j:
  bulkhead:
    configs: {small: {maxConcurrentCalls: 3}, default: {maxWaitDuration: 5}}
    instances:
      b-1: {baseConfig: small}
      c: {maxConcurrentCalls: 4}
`)
	assert.Empty(t, hasKind(c, convert.LeftOut))
	assert.Equal(t, []flow.Rule{{Resource: "a", Limit: 5, Window: 2 * time.Second, Algorithm: flow.FixedWindow}}, c.Rules.Flow)
	assert.Equal(t, []isolation.Rule{{Resource: "b-1", Limit: 3}, {Resource: "c", Limit: 4, MaxWait: 5 * time.Millisecond}}, c.Rules.Isolation)

	c = convertFile("resilience4j:\n  bulkhead:\n    enabled: false\n    instances: {a: {maxConcurrentCalls: 3}}")
	assert.Empty(t, c.Rules.Isolation)
	assert.NotEmpty(t, hasKind(c, convert.Understood))
}

func TestResilience4jBreakersLookAtTheLastCalls(t *testing.T) {
	c := convertFile(`
resilience4j.circuitbreaker.instances:
  a: {slidingWindowSize: 30, slowCallRateThreshold: 80, slowCallDurationThreshold: 2s, permittedNumberOfCallsInHalfOpenState: 4}
  b: {slidingWindowType: TIME_BASED, slidingWindowSize: 30, failureRateThreshold: 33.3, minimumNumberOfCalls: 5}
`)
	assert.Empty(t, hasKind(c, convert.LeftOut))
	a := breaker.Rule{
		Resource: "a", Strategy: breaker.ErrorRatio, Threshold: 0.5, WindowCalls: 30, MinCalls: 30, OpenFor: time.Minute, Probes: 4,
		ProbeThreshold: 0.5, ProbeTimeout: time.Minute,
	}
	slow, b := a, a
	slow.Name, slow.Strategy, slow.SlowAfter, slow.Threshold, slow.ProbeThreshold = "a-slow", breaker.SlowRatio, 2*time.Second, 0.8, 0.8
	b.Resource, b.Threshold, b.ProbeThreshold = "b", 0.333, 0.333
	b.WindowCalls, b.Window, b.MinCalls, b.Probes = 0, 30*time.Second, 5, 10
	assert.Equal(t, []breaker.Rule{a, slow, b}, c.Rules.Breaker)
	document, err := c.YAML()
	require.NoError(t, err)
	assert.Contains(t, string(document), "window:\n      calls: 30\n")
}

func TestResilience4jLimitsThatAreNotUnderstoodAreNotWritten(t *testing.T) {
	for _, instance := range []string{
		"ratelimiter: {instances: {a: {limitForPeriod: '${X:10}', limitRefreshPeriod: 1s}}}", "ratelimiter: {instances: {a: {limitForPeriod: 5}}}",
		"ratelimiter: {instances: {a: {limitForPeriod: 5, limitRefreshPeriod: soon}}}", "bulkhead: {instances: {a: {baseConfig: none}}}",
		"bulkhead: {instances: {a: {maxConcurrentCalls: x}}}", "bulkhead: {instances: {a: 5}}", "retry: {instances: {a: {maxAttempts: 3}}}",
		"circuitbreaker: {instances: {a: {failureRateThreshold: 101}}}", "circuitbreaker: {instances: {a: {slidingWindowType: HOURLY}}}",
		"circuitbreaker: {instances: {a: {waitDurationInOpenState: -1s}}}",
	} {
		c := convertFile("resilience4j: {" + instance + "}")
		require.NotEmpty(t, hasKind(c, convert.LeftOut), instance)
		document, err := c.YAML()
		require.NoError(t, err)
		assert.NotContains(t, string(document), "resource:", instance)
	}
}

func TestAnchorsOfYAMLAreMerged(t *testing.T) {
	c := convertFile(`
x: &base {maxConcurrentCalls: 900, maxWaitDuration: 20ms}
y: &other {maxConcurrentCalls: 3}
resilience4j.bulkhead.instances:
  größe: {<<: *base}
  two: {maxConcurrentCalls: 70, <<: *base}
  three:
    <<: [*base, *other]
`)
	assert.Empty(t, hasKind(c, convert.LeftOut))
	assert.Equal(t, []isolation.Rule{
		{Resource: "größe", Limit: 900, MaxWait: 20 * time.Millisecond},
		{Resource: "two", Limit: 70, MaxWait: 20 * time.Millisecond},
		{Resource: "three", Limit: 900, MaxWait: 20 * time.Millisecond},
	}, c.Rules.Isolation)
	for _, file := range []string{
		"resilience4j.bulkhead.instances: {a: {maxConcurrentCalls: 3, maxConcurrentCalls: 5}}", "resilience4j.bulkhead.instances: {a: {<<: 3}}",
	} {
		assert.True(t, convertFile(file).Has(convert.Unreadable), file)
	}
}

func TestAliasesOfYAMLAreBounded(t *testing.T) {
	file := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 12 {
		file += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i)
	}
	assert.True(t, convertFile(file+"resilience4j: {}\n").Has(convert.Unreadable))
}

// Spring takes what a later document says, and what is for a profile only with that.
func TestDocumentsOfSpringCountTogether(t *testing.T) {
	c := convertFile(`
resilience4j.bulkhead.instances: {a: {maxConcurrentCalls: 5, maxWaitDuration: 7ms}, b: {maxConcurrentCalls: 6}}
---
resilience4j:
  bulkhead:
    instances:
      a: {max-concurrent-calls: 50}
`)
	assert.Empty(t, hasKind(c, convert.LeftOut))
	assert.ElementsMatch(t, []isolation.Rule{
		{Resource: "a", Limit: 50, MaxWait: 7 * time.Millisecond},
		{Resource: "b", Limit: 6},
	}, c.Rules.Isolation)
	for _, profile := range []string{"spring.config.activate.on-profile: test", "spring: {profiles: test}", "spring: {config: {activate: {onProfile: [a, b]}}}"} {
		document := profile + "\nresilience4j.bulkhead.instances: {a: {maxConcurrentCalls: 1}}\n"
		c = convertFile("resilience4j.bulkhead.instances: {a: {maxConcurrentCalls: 50}}\n---\n" + document)
		assert.Equal(t, []isolation.Rule{{Resource: "a", Limit: 50}}, c.Rules.Isolation)
		assert.Len(t, hasKind(c, convert.LeftOut), 1, profile)
		assert.Len(t, convertFile(document).Rules.Isolation, 1, "the file of a profile")
	}
}

func TestQuotaModeOfEnvoyRefusesNothing(t *testing.T) {
	c := convertFile("domain: d\ndescriptors:\n- {key: a, quota_mode: true, rate_limit: {unit: second, requests_per_unit: 3}}")
	require.Len(t, c.Rules.HotParam, 1)
	assert.True(t, c.Rules.HotParam[0].Shadow)
}

func TestLimitsThatTheirProductRefusesAreNotWritten(t *testing.T) {
	const r4j, envoy = "resilience4j:\n  ", "domain: d\ndescriptors:\n"
	const zone, minute = "limit_req_zone $server_name zone=z:1m rate=", "{unit: minute, requests_per_unit: 5}"
	for name, file := range map[string]string{
		"permits":            r4j + "ratelimiter: {instances: {a: {limitForPeriod: 0, limitRefreshPeriod: 1s}}}",
		"period":             r4j + "ratelimiter: {instances: {a: {limitForPeriod: 10, limitRefreshPeriod: 0s}}}",
		"ratio":              r4j + "circuitbreaker: {instances: {a: {failureRateThreshold: 0}}}",
		"window of calls":    r4j + "circuitbreaker: {instances: {a: {slidingWindowSize: 0}}}",
		"window of time":     r4j + "circuitbreaker: {instances: {a: {slidingWindowType: TIME_BASED, slidingWindowSize: 0}}}",
		"least calls":        r4j + "circuitbreaker: {instances: {a: {minimumNumberOfCalls: 0}}}",
		"time open":          r4j + "circuitbreaker: {instances: {a: {waitDurationInOpenState: 0}}}",
		"probes":             r4j + "circuitbreaker: {instances: {a: {permittedNumberOfCallsInHalfOpenState: 0}}}",
		"slow":               r4j + "circuitbreaker: {instances: {a: {slowCallDurationThreshold: 0}}}",
		"zone twice":         zone + "5r/s; " + zone + "50r/s; limit_req zone=z;",
		"descriptor twice":   envoy + "- {key: l, rate_limit: " + minute + "}\n- {key: l, rate_limit: {unit: minute, requests_per_unit: 50}}",
		"of a value, thrice": envoy + strings.Repeat("- {key: l, value: v, rate_limit: "+minute+"}\n", 3),
		"unknown in limit":   envoy + "- {key: l, rate_limit: {unit: minute, requests_per_unit: 5, unit_multiplier: 10}}",
		"unknown beside it":  envoy + "- {key: l, value: v*, share_threshold: true, rate_limit: " + minute + "}",
	} {
		c := convertFile(file)
		assert.Len(t, hasKind(c, convert.LeftOut), max(1, strings.Count(file, "value: v, rate")-1), "%s: %v", name, c.Findings)
		assert.Zero(t, c.Rules.Len(), "%s: %+v", name, c.Rules)
	}
}

// A field that is not known may be a limit that is misspelled, of which the default would be written.
func TestInstancesOfResilience4jWithUnknownFieldsAreNotWritten(t *testing.T) {
	for _, instance := range []string{
		"bulkhead.instances.x: {maxConcurrentCall: 5}", "bulkhead.instances.x: {maxConcurrentCalls: 5, enabled: false}",
		"ratelimiter.instances.x: {limitForPeriod: 5, limitRefreshPeriod: 1s, timeout: 0}", "circuitbreaker.instances.x: {failureRateTreshold: 5}",
		"circuitbreaker.backends.x: {ringBufferSizeInClosedState: 5, failureRateThreshold: 50}",
	} {
		c := convertFile("resilience4j." + instance)
		assert.NotEmpty(t, hasKind(c, convert.LeftOut), instance)
		assert.Zero(t, c.Rules.Len(), instance)
	}
	c := convertFile("resilience4j.circuitbreaker.instances.x: {failureRateThreshold: 5, enableExponentialBackoff: true}")
	assert.Len(t, hasKind(c, convert.LeftOut), 1)
	assert.Len(t, c.Rules.Breaker, 1, "how long it is open has nothing to do with the limit")
}

func TestBlocksOfLuaAreSkipped(t *testing.T) {
	const limit = "limit_conn_zone $binary_remote_addr zone=a:1m; server { limit_conn a 3; }"
	for _, lua := range []string{
		"content_by_lua_block { -- } unbalanced {{\n local s = \"a } \\\" {{ limit_conn a 1;\" }",
		"set_by_lua_block $x { return '}' .. [[ } ]] .. [==[ ]] } ]==] }",
		"access_by_lua_block {--[[ }\n} ]] local t = { a = { 1 }, b = t[1] } }",
		"log_by_lua_block { local s = 'never ends }\n }",
	} {
		c := convertFile("http { " + lua + "\n" + limit + " }")
		assert.Len(t, c.Rules.HotParam, 1, "%s: %v", lua, c.Findings)
		assert.False(t, c.Has(convert.LeftOut), lua)
	}
	for _, lua := range []string{"content_by_lua_block { ", "content_by_lua_block { [[ }", "content_by_lua_block { '\\", "content_by_lua_block { --"} {
		c := convertFile("limit_conn_zone a zone=a:1m; " + lua)
		assert.True(t, c.Has(convert.Unreadable), lua)
	}
}
