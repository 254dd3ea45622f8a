package nethttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestFieldsOfARefusalAreSetByItsReason(t *testing.T) {
	for _, reason := range []rule.Reason{rule.RateLimited, rule.Overloaded, rule.Unavailable, rule.Denied, rule.Injected} {
		engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1))
		header := http.Header{}
		nethttp.NewAnswers(engine, nethttp.Fields{}, exact).SetRefused(header, &core.BlockError{
			Resource: orders, Kind: rules.KindFlow, Rule: "reads", Reason: reason, RetryAfter: time.Second,
		}, "")
		assert.Equal(t, reason == rule.RateLimited, header.Get("RateLimit") != "", reason)
		assert.Equal(t, reason == rule.RateLimited, header.Get("RateLimit-Policy") != "", reason)
		assert.Equal(t, reason != rule.Denied, header.Get("Retry-After") != "", reason)
	}
}
