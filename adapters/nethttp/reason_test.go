package nethttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestRefusalIsAnsweredByItsReason(t *testing.T) {
	const registry = "https://iana.org/assignments/http-problem-types#"
	for _, test := range []struct {
		reason     rule.Reason
		refuses    time.Duration
		status     int
		kind       string // the type of the problem
		retryAfter string
		limited    bool // there is a RateLimit field
	}{
		{rule.RateLimited, 1500 * time.Millisecond, 429, registry + "quota-exceeded", "2", true},
		{rule.RateLimited, core.Never, 429, registry + "quota-exceeded", "", true},
		{rule.Overloaded, 3 * time.Second, 503, registry + "temporary-reduced-capacity", "3", false},
		{rule.Unavailable, 5 * time.Second, 503, "about:blank", "5", false},
		{rule.Unavailable, core.Never, 503, "about:blank", "", false},
		{rule.Injected, 5 * time.Second, 503, "about:blank", "5", false},
		{rule.Denied, 5 * time.Second, 403, "about:blank", "", false},
		{rule.Denied, core.Never, 403, "about:blank", "", false},
	} {
		t.Run(test.reason.String()+" "+test.refuses.String(), func(t *testing.T) {
			p := &probe{reason: test.reason, refuses: test.refuses}
			server := serve(t, guardOrders(p.newEngine(t, ""), nethttp.Options{}, ok))
			for range 2 { // the second answer is a cached one
				refused := get(t, server, "/orders/7")
				assert.Equal(t, test.status, refused.status)
				body := problemOf(t, refused)
				assert.Equal(t, test.kind, body.Type)
				assert.Equal(t, test.retryAfter, refused.header.Get("Retry-After"))
				assert.Equal(t, test.limited, refused.header.Get("RateLimit") != "")
				if test.limited {
					assert.Equal(t, []string{"mine"}, body.ViolatedPolicies)
				} else {
					assert.Empty(t, body.ViolatedPolicies)
				}
				if test.reason == rule.Denied {
					assert.NotContains(t, body.Detail, "try again")
				}
			}
		})
	}
}

func TestFieldsOfARefusalAreSetByItsReason(t *testing.T) {
	for _, reason := range []rule.Reason{rule.RateLimited, rule.Overloaded, rule.Unavailable, rule.Denied, rule.Injected} {
		engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1))
		header := http.Header{}
		nethttp.FieldsOnRefusal.SetRefused(header, engine, &core.BlockError{
			Resource: orders, Rule: "reads", Reason: reason, RetryAfter: time.Second,
		})
		assert.Equal(t, reason == rule.RateLimited, header.Get("RateLimit") != "", reason)
		assert.Equal(t, reason == rule.RateLimited, header.Get("RateLimit-Policy") != "", reason)
		assert.Equal(t, reason != rule.Denied, header.Get("Retry-After") != "", reason)
	}
}
