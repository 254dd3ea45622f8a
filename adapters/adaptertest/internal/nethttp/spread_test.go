package nethttp_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestRetryAfterIsSpreadAndNeverTooEarly(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	for name, test := range map[string]struct {
		spread      nethttp.Spread
		after       time.Duration
		first, last int
	}{
		"default":                 {nethttp.Spread{}, time.Minute, 60, 72},
		"rounded up":              {nethttp.Spread{}, 1200 * time.Millisecond, 2, 3},
		"one second":              {nethttp.Spread{}, time.Second, 1, 2},
		"a share":                 {nethttp.Spread{Share: 1}, 10 * time.Second, 10, 20},
		"none":                    {nethttp.Spread{Share: -1}, time.Minute, 60, 60},
		"a day":                   {nethttp.Spread{}, 24 * time.Hour, 86400, 87000},
		"a day, with a most":      {nethttp.Spread{Most: time.Minute}, 24 * time.Hour, 86400, 86460},
		"longer than clocks have": {nethttp.Spread{}, rule.Never - 1, int((rule.Never-1)/time.Second) + 1, int((rule.Never-1)/time.Second) + 601},
	} {
		block := &core.BlockError{Resource: orders, Reason: rule.RateLimited, RetryAfter: test.after}
		answers := nethttp.NewAnswers(engine, nethttp.Fields{}, test.spread)
		seen := map[int]bool{}
		for range 2000 {
			header := make(http.Header)
			answers.SetRefused(header, block, "")
			seconds, err := strconv.Atoi(header.Get("Retry-After"))
			require.NoError(t, err)
			assert.GreaterOrEqual(t, seconds, test.first, name)
			assert.LessOrEqual(t, seconds, test.last, name)
			seen[seconds] = true
		}
		assert.Len(t, seen, min(test.last-test.first+1, 32), name)
	}
}

func TestRandomNumbersThatAreNoneStayWithinTheSpread(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	block := &core.BlockError{Resource: orders, Reason: rule.RateLimited, RetryAfter: 10 * time.Second}
	for random, want := range map[float64]string{-1: "10", 0: "10", 1: "12", 1e300: "12"} {
		answers := nethttp.NewAnswers(engine, nethttp.Fields{}, nethttp.Spread{Random: func() float64 { return random }})
		header := make(http.Header)
		answers.SetRetryAfter(header, block)
		assert.Equal(t, want, header.Get("Retry-After"), random)
	}
}
