package penstockprom_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rule"
)

func TestOutgoingCallsAreExposed(t *testing.T) {
	t.Parallel()
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, MaxTargets: 3, Seed: 1})
	require.NoError(t, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Clock: virtual, Burst: 1})
	require.NoError(t, err)
	refused := 0.0
	call := func(target string, a outgoing.Answer) {
		call, err := outgoing.Begin(outgoing.AsRetry(t.Context()), throttle, budgets, target, rule.PriorityNormal)
		if err != nil {
			refused++
			return
		}
		call.End(a)
	}
	call("pay", outgoing.Answer{Result: outgoing.Accepted})
	call("pay", outgoing.Answer{Result: outgoing.Accepted}) // one retry too many
	call("busy", outgoing.Answer{Result: outgoing.Rejected, RetryAfter: 5 * time.Second})
	call("busy", outgoing.Answer{})
	call("\xff", outgoing.Answer{Result: outgoing.Accepted})
	call("\xfe", outgoing.Answer{Result: outgoing.Accepted}) // beyond the bound
	require.InDelta(t, 2, refused, 0)

	now := scrape(t, penstockprom.NewOutgoingCollector(throttle, budgets, nil))
	for key, want := range map[string]float64{
		`penstock_outgoing_requests_total{outcome="accepted",target="pay"}`:              1,
		`penstock_outgoing_requests_total{outcome="rejected",target="busy"}`:             1,
		`penstock_outgoing_requests_total{outcome="paused",target="busy"}`:               1,
		`penstock_outgoing_requests_total{outcome="throttled",target="busy"}`:            0,
		`penstock_outgoing_requests_total{outcome="accepted",target="` + "\uFFFD" + `"}`: 1,
		`penstock_outgoing_refusal_ratio{target="busy"}`:                                 0,
		`penstock_outgoing_paused_seconds{target="busy"}`:                                6,
		`penstock_outgoing_paused_seconds{target="pay"}`:                                 0,
		`penstock_outgoing_untracked_total`:                                              1,
		`penstock_outgoing_retries_total{outcome="allowed",target="pay"}`:                1,
		`penstock_outgoing_retries_total{outcome="refused",target="pay"}`:                1,
		`penstock_outgoing_retry_tokens{target="pay"}`:                                   0,
	} {
		assert.InDelta(t, want, now[key], 0, key)
		assert.Contains(t, now, key)
	}
	assert.Empty(t, scrape(t, penstockprom.NewOutgoingCollector(nil, nil, nil)))
}
