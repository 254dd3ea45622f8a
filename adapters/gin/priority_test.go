package penstockgin_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestPriorityOfARequestIsWhatItsCallerMayChoose(t *testing.T) {
	inside := penstockgin.Options{
		PriorityHeader: "penstock-priority",
		PriorityCallers: []priority.Callers{
			{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Max: core.PriorityCritical},
		},
	}
	byRoute := inside
	byRoute.Priority = func(c *gin.Context) rule.Priority {
		if c.FullPath() == "/orders/:id" {
			return core.PriorityLow
		}
		return core.PriorityNormal
	}
	byFunction := byRoute
	byFunction.PriorityTrust = func(c *gin.Context) (rule.Priority, bool) {
		return core.PriorityHigh, c.GetHeader("Authorization") == "secret"
	}
	behind := inside
	behind.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	for name, test := range map[string]struct {
		options     penstockgin.Options
		from, value string
		want        rule.Priority
		known       bool
	}{
		"trusted":                {inside, "10.1.1.1:80", "critical", core.PriorityCritical, true},
		"not trusted":            {inside, "192.0.2.1:80", "critical", core.PriorityNormal, false},
		"client of a proxy":      {behind, "192.0.2.1:80", "low", core.PriorityLow, true},
		"bad value":              {inside, "10.1.1.1:80", "urgent", core.PriorityNormal, false},
		"by route":               {byRoute, "192.0.2.1:80", "critical", core.PriorityLow, true},
		"trusted, by route":      {byRoute, "10.1.1.1:80", "high", core.PriorityHigh, true},
		"trusted by a function":  {byFunction, "192.0.2.1:80", "critical", core.PriorityHigh, true},
		"nothing set":            {penstockgin.Options{}, "10.1.1.1:80", "critical", core.PriorityNormal, false},
		"nothing said, by route": {byRoute, "10.1.1.1:80", "", core.PriorityLow, true},
	} {
		p := new(probe)
		var inContext rule.Priority
		known := false
		handler := router(p.newEngine(t, ""), test.options, func(c *gin.Context) {
			inContext, known = core.PriorityFromContext(c.Request.Context())
		})
		request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
		request.RemoteAddr = test.from
		request.Header.Set("Authorization", "secret")
		request.Header.Set("X-Forwarded-For", "10.1.1.1")
		if test.value != "" {
			request.Header.Set(priority.Field, test.value)
		}
		handler.ServeHTTP(httptest.NewRecorder(), request)
		assert.Equal(t, test.want, p.call().Priority(), name)
		assert.Equal(t, test.want, inContext, name)
		assert.Equal(t, test.known, known, name)
	}
}
