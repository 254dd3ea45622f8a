package convert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
)

func TestConvertedBreakersDoTheSame(t *testing.T) {
	golang := breaker.Rule{
		Resource: "r", Strategy: breaker.ErrorRatio, Threshold: 0.4, Window: 10 * time.Second, MinCalls: 1,
		OpenFor: 3 * time.Second, Probes: 1, ProbeTimeout: time.Minute,
	}
	java := breaker.Rule{
		Resource: "r", Window: time.Second, MinCalls: 5, OpenFor: 10 * time.Second, Probes: 1, ProbeTimeout: time.Minute,
		Strategy: breaker.ErrorRatio, Threshold: 0.2,
	}
	with := func(rule breaker.Rule, change func(*breaker.Rule)) breaker.Rule {
		change(&rule)
		return rule
	}
	strategy := func(rule breaker.Rule, strategy breaker.Strategy, threshold float64, slowAfter time.Duration) breaker.Rule {
		rule.Strategy, rule.Threshold, rule.SlowAfter = strategy, threshold, slowAfter
		return rule
	}
	for fields, want := range map[string]breaker.Rule{
		`"strategy": 1, "threshold": 0.4, "statIntervalMs": 10000, "retryTimeoutMs": 3000`: golang,
		`"Strategy": 1, "threshold": 0.4, "statIntervalMs": 10000, "retryTimeoutMs": 3000, "id": "pay", "minRequestAmount": 30,
			"maxAllowedRtMs": 50, "statSlidingWindowBucketCount": 10`: with(golang, func(r *breaker.Rule) { r.Name, r.MinCalls = "pay", 30 }),
		`"threshold": 0.5, "maxAllowedRtMs": 300, "statIntervalMs": 10000, "retryTimeoutMs": 3000`: strategy(
			golang, breaker.SlowRatio, 0.5, 300*time.Millisecond),
		`"strategy": 2, "threshold": 50.9, "statIntervalMs": 120000, "retryTimeoutMs": 3000`: with(
			strategy(golang, breaker.ErrorCount, 50, 0), func(r *breaker.Rule) { r.Window, r.ProbeTimeout = 2*time.Minute, 2*time.Minute }),

		`"grade": 1, "count": 0.2, "timeWindow": 10`: java,
		`"grade": 1, "count": 0.2, "timeWindow": 10, "limitApp": "mobile", "minRequestAmount": 7, "statIntervalMs": 20000, "id": 3, "app": "a"`: with(
			java, func(r *breaker.Rule) { r.MinCalls, r.Window = 7, 20*time.Second }),
		`"grade": 1, "count": 0, "timeWindow": 10`:                                strategy(java, breaker.ErrorCount, 1, 0),
		`"grade": 2, "count": 0, "timeWindow": 10`:                                strategy(java, breaker.ErrorCount, 1, 0),
		`"grade": 2, "count": 3.5, "timeWindow": 10`:                              strategy(java, breaker.ErrorCount, 4, 0),
		`"count": 200, "timeWindow": 10`:                                          strategy(java, breaker.SlowRatio, 1, 200*time.Millisecond),
		`"grade": 0, "count": 199.5, "timeWindow": 10, "slowRatioThreshold": 0.6`: strategy(java, breaker.SlowRatio, 0.6, 200*time.Millisecond),
		`"grade": 2, "count": 3, "timeWindow": 10, "regex": true`: with(strategy(java, breaker.ErrorCount, 4, 0),
			func(r *breaker.Rule) { r.Resource, r.Match = "", "~^(?:r)$" }),
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			assert.Equal(t, []breaker.Rule{want}, rules.Breaker)
			assert.Empty(t, findings)
			assert.Empty(t, rules.Flow)
			assert.Empty(t, rules.Isolation)
		})
	}
}

func TestBreakersThatCannotBeConvertedAreReported(t *testing.T) {
	for fields, want := range map[string]string{
		`"strategy": 1, "threshold": 0.2, "retryTimeoutMs": 20`:                                   `f:1:2: rule on "r": left out: Sentinel ignores a rule whose statIntervalMs is missing or 0`,
		`"strategy": 1, "threshold": 0.2, "statIntervalMs": 1000, "retryTimeoutMs": 0`:            `f:1:95: rule on "r": left out: Sentinel ignores a rule whose retryTimeoutMs is missing or 0`,
		`"strategy": 1, "threshold": 1.2, "statIntervalMs": 1000, "retryTimeoutMs": 9`:            `ignores a circuit breaker whose ratio is above 1, and threshold is 1.2`,
		`"strategy": 1, "threshold": 0, "statIntervalMs": 1000, "retryTimeoutMs": 9`:              `with threshold 0 Sentinel opens even if no call is bad`,
		`"strategy": 2, "threshold": 0.9, "statIntervalMs": 1000, "retryTimeoutMs": 9`:            `with threshold 0.9 Sentinel opens even if no call is bad`,
		`"strategy": 3, "threshold": 1, "statIntervalMs": 1000, "retryTimeoutMs": 9`:              `strategy is 3, which Sentinel does not know`,
		`"strategy": 1, "threshold": "one", "statIntervalMs": 1000, "retryTimeoutMs": 9`:          `threshold is "one": must be a number`,
		`"strategy": 1, "threshold": 1, "statIntervalMs": "one", "retryTimeoutMs": 9`:             `statIntervalMs is "one": must be a number`,
		`"strategy": 1, "threshold": 1, "statIntervalMs": 5, "retryTimeoutMs": 9`:                 `as a rule here, window is 5ms: must be from 10ms`,
		`"strategy": 1, "threshold": 0.0001, "statIntervalMs": 1000, "retryTimeoutMs": 9`:         `as a rule here, threshold is 0.0001: must be a share of the calls from 0.001 to 1`,
		`"strategy": 1, "retryTimeoutMs": 9`:                                                      `there is neither a threshold (Go) nor a count (Java)`,
		`"grade": 1, "count": 0.2, "slowRatioThreshold": 1`:                                       `ignores a rule whose timeWindow is missing or 0`,
		`"grade": 1, "count": 0.2, "timeWindow": 1, "minRequestAmount": 0`:                        `ignores a rule whose minRequestAmount is missing or 0`,
		`"grade": 1, "count": 1.5, "timeWindow": 1`:                                               `ignores a circuit breaker whose ratio is above 1, and count is 1.5`,
		`"grade": 1, "count": 1, "timeWindow": 1`:                                                 `Sentinel never opens it, for no ratio of failed calls is above 1`,
		`"grade": 0, "count": 9, "timeWindow": 1, "slowRatioThreshold": 1.1`:                      `whose ratio is above 1, and slowRatioThreshold is 1.1`,
		`"grade": 4, "count": 9, "timeWindow": 1`:                                                 `grade is 4, which Sentinel does not know`,
		`"grade": 0, "count": 1e300, "timeWindow": 1`:                                             `as a rule here, slowAfter is`,
		`"grade": 2, "count": 1e300, "timeWindow": 1`:                                             `as a rule here, threshold is 1e+300`,
		`"grade": 2, "count": 1, "timeWindow": 4000000000`:                                        `as a rule here, openFor is`,
		`"strategy": 2, "threshold": 2, "statIntervalMs": 1000, "retryTimeoutMs": 1, "count": -1`: `the field "count": circuit breakers of sentinel-golang have none of that name`,
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			if fields[len(fields)-2:] != "-1" { // only the field is left out
				assert.Empty(t, rules.Breaker)
			}
			assert.Empty(t, rules.Flow)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], "left out: ")
			assert.Contains(t, findings[0], want)
		})
	}
}

// A strategy and a threshold are what circuit breakers of sentinel-golang have, whatever else is missing: as a
// flow rule it would limit to one call a second.
func TestBreakerWithoutIntervalsIsNoFlowRule(t *testing.T) {
	rules, findings := convertRule(t, `"strategy": 1, "threshold": 1`)
	assert.Empty(t, rules.Flow)
	assert.Empty(t, rules.Breaker)
	require.NotEmpty(t, findings)
	assert.Contains(t, findings[0], `left out: Sentinel ignores a rule whose statIntervalMs is missing or 0`)
}

func TestBreakersThatBehaveDifferentlyAreReported(t *testing.T) {
	for fields, want := range map[string]struct {
		finding string
		change  func(*breaker.Rule)
	}{
		`"strategy": 1, "threshold": 0.5, "statIntervalMs": 1000, "retryTimeoutMs": 1, "probeNum": 3`: {
			`until 3 have ended well; here only the first 3 pass`, func(r *breaker.Rule) { r.Probes = 3 },
		},
		`"threshold": 0.5, "statIntervalMs": 1000, "retryTimeoutMs": 1`: {
			`in Sentinel a call of 1 ms is slow (maxAllowedRtMs 0)`,
			func(r *breaker.Rule) { r.Strategy, r.SlowAfter = breaker.SlowRatio, time.Millisecond },
		},
		`"grade": 0, "count": 9, "timeWindow": 1, "slowRatioThreshold": 0`: {
			`Sentinel opens at the first slow call (slowRatioThreshold 0); here at a share of 0.001`,
			func(r *breaker.Rule) {
				r.Strategy, r.Threshold, r.SlowAfter = breaker.SlowRatio, 0.001, 9*time.Millisecond
				r.OpenFor, r.MinCalls = time.Second, 5
			},
		},
	} {
		t.Run(fields, func(t *testing.T) {
			rules, findings := convertRule(t, fields)
			rule := breaker.Rule{
				Resource: "r", Strategy: breaker.ErrorRatio, Threshold: 0.5, Window: time.Second, MinCalls: 1,
				OpenFor: time.Millisecond, Probes: 1, ProbeTimeout: time.Minute,
			}
			want.change(&rule)
			assert.Equal(t, []breaker.Rule{rule}, rules.Breaker)
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], `rule on "r": differs: `)
			assert.Contains(t, findings[0], want.finding)
		})
	}
}

// notes returns the findings about all rules of a kind.
func notes(data string) (list []string) {
	for _, f := range convert.Convert(convert.File{Name: "f", Data: []byte(data)}).Findings {
		if f.Kind == convert.Differs && f.Resource == "" {
			list = append(list, f.String())
		}
	}
	return list
}

func TestWhatAllBreakersDoDifferentlyIsReportedOnce(t *testing.T) {
	found := notes(`[
		{"resource": "a", "strategy": 1, "threshold": 0.5, "statIntervalMs": 1000, "retryTimeoutMs": 1, "statSlidingWindowBucketCount": 10},
		{"resource": "b", "strategy": 1, "threshold": 0.5, "statIntervalMs": 1000, "retryTimeoutMs": 1, "statSlidingWindowBucketCount": 3},
		{"resource": "c", "grade": 0, "count": 0.5, "timeWindow": 1},
		{"resource": "d", "grade": 1, "count": 0.5, "timeWindow": 1},
		{"resource": "e", "grade": 1, "count": 0.5, "timeWindow": 1}
	]`)
	require.Len(t, found, 4)
	assert.Contains(t, found[0], "f:2:3: differs: circuit breakers: in Sentinel a probe may take any time")
	assert.Contains(t, found[1], "f:3:3: differs: circuit breakers: in Sentinel the window starts empty")
	assert.Contains(t, found[2], "f:4:3: differs: circuit breakers: Sentinel compares response times in whole milliseconds")
	assert.Contains(t, found[3], "f:5:3: differs: circuit breakers: Sentinel for Java opens when a ratio is above the threshold")
	assert.Empty(t, notes(`[{"resource": "a", "grade": 1, "count": 7, "timeWindow": 1}]`), "nothing about rules that were left out")
}

func TestPatternsOfBreakersAreComparedWithBreakersOnly(t *testing.T) {
	c := convert.Convert(convert.File{Name: "f", Data: []byte(`[
		{"resource": "/u/.*", "grade": 2, "count": 1, "timeWindow": 1, "regex": true},
		{"resource": "/u/a", "count": 2},
		{"resource": "/v/.*", "grade": 2, "count": 1, "timeWindow": 1, "regex": true},
		{"resource": "/v/a", "grade": 2, "count": 1, "timeWindow": 1}
	]`)})
	var overlaps []string
	for _, f := range c.Findings {
		if f.Resource != "" {
			overlaps = append(overlaps, f.String())
		}
	}
	require.Len(t, overlaps, 1)
	assert.Contains(t, overlaps[0], `f:4:3: rule on "/v/.*": differs: in Sentinel a pattern does not apply`)
}
