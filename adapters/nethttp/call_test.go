package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestRulesGetWhatTheOptionsSayOfARequest(t *testing.T) {
	p := new(probe)
	engine := p.newEngine(t, "mobile")
	handler := guardOrders(engine, nethttp.Options{
		Origin: func(r *http.Request) string { return r.Header.Get("App") },
		Tokens: func(*http.Request) int { return 7 },
		Attributes: func(r *http.Request) []core.Option {
			return []core.Option{core.String("user", r.Header.Get("User")), core.Int("size", 3), core.Priority(core.PriorityLow)}
		},
	}, ok)
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	request.Header.Set("App", "batch")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	assert.Empty(t, p.outcomes(), "the rule is for another origin")

	request.Header.Set("App", "mobile")
	request.Header.Set("User", "ann")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	require.Equal(t, []string{"ended well"}, p.outcomes())
	want := rule.Call{Now: engine.Clock().Now(), Tokens: 7, Attribute: rule.String("ann")}
	want.SetCaller(rule.PriorityLow, true)
	assert.Equal(t, want, p.call())
}

func TestOutgoingCallIsNotInbound(t *testing.T) {
	p := new(probe)
	engine := p.newEngine(t, "")
	server := serve(t, http.HandlerFunc(ok))
	client, _ := dial(server, engine)
	transport := client.Transport.(*nethttp.Transport)
	transport.Tokens = func(*http.Request) int { return 3 }
	transport.Attributes = func(r *http.Request) []core.Option {
		return []core.Option{core.String("user", r.Method), core.Priority(core.PriorityHigh)}
	}
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	want := rule.Call{Now: engine.Clock().Now(), Tokens: 3, Attribute: rule.String(http.MethodGet)}
	want.SetCaller(rule.PriorityHigh, false)
	assert.Equal(t, want, p.call())
}
