package nethttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

// inject returns an engine that refuses all calls of a resource with a fault.
func inject(t *testing.T, resource string, abort fault.Abort) *core.Engine {
	t.Helper()
	engine, clock := newEngine(t, core.Config{})
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{{
		Name: "broken", Resource: resource, Percent: 100, Abort: abort, Until: clock.Now().Add(time.Hour).Time(),
	}}}))
	return engine
}

func TestInjectedFaultIsAnsweredAsItsRuleSays(t *testing.T) {
	for name, test := range map[string]struct {
		abort  fault.Abort
		status int
		title  string
	}{
		"with its status":            {fault.Abort{HTTP: 500}, 500, "Internal Server Error"},
		"with that of a client":      {fault.Abort{HTTP: 404}, 404, "Not Found"},
		"with a status without name": {fault.Abort{HTTP: 599}, 599, "Status 599"},
		"without a status":           {fault.Abort{GRPC: "ABORTED"}, 503, "Service Unavailable"},
	} {
		t.Run("server "+name, func(t *testing.T) {
			server := serve(t, guardOrders(inject(t, orders, test.abort), nethttp.Options{Fields: nethttp.Fields{ShowRules: true}}, ok))
			for range 2 { // the second answer is a cached one
				refused := get(t, server, "/orders/7")
				assert.Equal(t, test.status, refused.status)
				assert.Empty(t, refused.header.Get("Retry-After"))
				p := problemOf(t, refused)
				assert.Equal(t, "about:blank", p.Type)
				assert.Equal(t, test.title, p.Title)
				assert.Equal(t, `The call of "GET:/orders/{id}" was refused by fault "broken"; the fault is injected on purpose.`, p.Detail)
			}
		})
	}
}

func TestInjectedFaultIsAResponseToAClient(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	_, resource := dial(server, nil)
	client, _ := dial(server, inject(t, resource, fault.Abort{HTTP: 502}))
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, 502, response.StatusCode)
	assert.Equal(t, "502 Bad Gateway", response.Status)
	assert.NotNil(t, response.Request)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.EqualValues(t, len(body), response.ContentLength)
	var p problem
	require.NoError(t, json.Unmarshal(body, &p))
	assert.Equal(t, 502, p.Status)
	assert.Contains(t, p.Detail, "injected on purpose")
}

func TestChangedAnswerOfAFaultIsUsedAtOnce(t *testing.T) {
	engine := inject(t, orders, fault.Abort{HTTP: 500})
	server := serve(t, guardOrders(engine, nethttp.Options{}, ok))
	assert.Equal(t, 500, get(t, server, "/orders/7").status)
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{{
		Name: "broken", Resource: orders, Percent: 100, Abort: fault.Abort{HTTP: 502}, Until: engine.Clock().Now().Add(time.Hour).Time(),
	}}}))
	assert.Equal(t, 502, get(t, server, "/orders/7").status)
}

// A fault injected further down is a failure of the request, unlike another refusal.
func TestInjectedFaultFurtherDownIsAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		abort  fault.Abort
		failed uint64
	}{
		"503": {fault.Abort{HTTP: 503}, 1},
		"404": {fault.Abort{HTTP: 404}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			engine := inject(t, "pay", test.abort)
			server := serve(t, guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
				_, err := engine.Entry(r.Context(), "pay")
				nethttp.WriteProblem(w, err)
			}))
			assert.Equal(t, test.abort.HTTP, get(t, server, "/orders/7").status)
			counted := totals(engine, orders)
			assert.Equal(t, test.failed, counted.Failed)
			assert.EqualValues(t, 1, counted.Completed)
		})
	}
}

func TestBreakerOfAClientOpensByInjectedFaults(t *testing.T) {
	broken := serve(t, guardOrders(inject(t, orders, fault.Abort{HTTP: 500}), nethttp.Options{}, ok))
	_, resource := dial(broken, nil)
	engine, _ := newEngine(t, core.Config{})
	require.NoError(t, engine.Load(rules.Set{Breaker: []breaker.Rule{{Resource: resource, Threshold: 0.5, MinCalls: 3}}}))
	client, _ := dial(broken, engine)
	for range 3 {
		response, err := client.Get(broken.URL + "/orders/7")
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	_, err := client.Get(broken.URL + "/orders/7") //nolint:bodyclose // there is none
	require.ErrorIs(t, err, core.ErrBlocked)
}
