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
	aside := func(next http.Handler) http.Handler { // what Go's mux does not look through
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
	}
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
		"by the pattern":   {nethttp.PatternResource(), true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
			defer engine.Close()
			set := rules.Set{Flow: []flow.Rule{{Resource: "POST:/login", Limit: 5}, {Resource: "POST:/logins", Limit: 5}}}
			require.NoError(t, engine.Load(set))
			options := nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Resource: test.resource}
			guard := nethttp.Middleware(engine, options)
			handler := guard(aside(mux))
			if name == "by the pattern" { // which the request has only below the mux
				below := http.NewServeMux()
				below.Handle("/login", guard(http.HandlerFunc(ok)))
				handler = below
			}
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/login", http.NoBody))
			assert.Equal(t, test.warns, strings.Contains(log.String(), "names one method of a route that serves all"), log.String())
		})
	}
}
