package nethttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func TestRuleForOneMethodOfARouteForAllIsWarnedOf(t *testing.T) {
	ok := func(http.ResponseWriter, *http.Request) {}
	for name, test := range map[string]struct {
		pattern string
		rules   []flow.Rule
		warns   bool
	}{
		"one method":            {"/login", []flow.Rule{{Resource: "POST:/login", Limit: 5}}, true},
		"of a host":             {"example.com/login", []flow.Rule{{Resource: "POST:example.com/login", Limit: 5}}, true},
		"another method":        {"/login", []flow.Rule{{Resource: "PUT:/login", Limit: 5}}, true},
		"two methods":           {"/login", []flow.Rule{{Resource: "POST:/login", Limit: 5}, {Resource: "PUT:/login", Limit: 5}}, true},
		"the route has one":     {"POST /login", []flow.Rule{{Resource: "POST:/login", Limit: 5}}, false},
		"all by a pattern":      {"/login", []flow.Rule{{Match: "*:/login", Shared: true, Limit: 5}}, false},
		"the rest by a pattern": {"/login", []flow.Rule{{Match: "*", Limit: 50}, {Resource: "POST:/login", Limit: 5}}, false},
		"another route":         {"/login", []flow.Rule{{Resource: "POST:/logins", Limit: 5}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
			defer engine.Close()
			mux := http.NewServeMux()
			mux.HandleFunc(test.pattern, ok)
			mux.HandleFunc("/", ok)
			guarded := nethttp.Middleware(engine, nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})(mux)
			post := func() {
				guarded.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", http.NoBody))
			}
			post() // before there are rules
			assert.Empty(t, log.String())
			require.NoError(t, engine.Load(rules.Set{Flow: test.rules}))
			for range 3 {
				post()
			}
			assert.Equal(t, test.warns, strings.Contains(log.String(), "names one method of a route that serves all"), log.String())
			assert.LessOrEqual(t, strings.Count(log.String(), "\n"), 1, "once")
		})
	}
}

func TestRuleForOneMethodIsWarnedOfWhateverNamesTheRequests(t *testing.T) {
	ok := func(http.ResponseWriter, *http.Request) {}
	mux := http.NewServeMux()
	mux.HandleFunc("/login", ok)
	for name, test := range map[string]struct {
		resource func(*http.Request) string
		warns    bool
	}{
		"of the mux":       {nethttp.MuxResource(mux), true},
		"of the route":     {nethttp.RouteResource(func(*http.Request) string { return "/login" }), true},
		"of another route": {nethttp.RouteResource(func(*http.Request) string { return "/logins" }), false},
		"of none":          {func(*http.Request) string { return "login" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
			defer engine.Close()
			set := rules.Set{Flow: []flow.Rule{{Resource: "POST:/login", Limit: 5}, {Resource: "POST:/logins", Limit: 5}}}
			require.NoError(t, engine.Load(set))
			options := nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Resource: test.resource}
			handler := nethttp.Middleware(engine, options)(mux)
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", http.NoBody))
			assert.Equal(t, test.warns, strings.Contains(log.String(), "names one method of a route that serves all"), log.String())
		})
	}
}
