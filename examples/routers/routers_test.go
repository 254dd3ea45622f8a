package routers_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/julienschmidt/httprouter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func orders(http.ResponseWriter, *http.Request) {}

// gorilla/mux: Use runs after routing.
func gorilla(engine *core.Engine, options nethttp.Options) http.Handler {
	options.Resource = nethttp.RouteResource(func(r *http.Request) string {
		route, _ := mux.CurrentRoute(r).GetPathTemplate()
		return route
	})
	options.Param = func(r *http.Request, name string) (string, bool) {
		value, ok := mux.Vars(r)[name]
		return value, ok
	}
	router := mux.NewRouter()
	router.HandleFunc("/orders/{id}", orders).Methods(http.MethodGet)
	router.Use(nethttp.Middleware(engine, options))
	return router
}

// httprouter does not tell the route: it is set before the middleware, which is around
// handlers.
func julienschmidt(engine *core.Engine, options nethttp.Options) http.Handler {
	options.Param = func(r *http.Request, name string) (string, bool) {
		value := httprouter.ParamsFromContext(r.Context()).ByName(name)
		return value, value != ""
	}
	use := nethttp.Middleware(engine, options)
	router := httprouter.New()
	handle := func(method, route string, handler http.Handler) {
		guarded := use(handler)
		router.Handler(method, route, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = method + " " + route
			guarded.ServeHTTP(w, r)
		}))
	}
	handle(http.MethodGet, "/orders/:id", http.HandlerFunc(orders))
	return router
}

// A handler without any router: the service says which routes there are.
func plain(engine *core.Engine, options nethttp.Options) http.Handler {
	options.Resource = nethttp.RouteResource(func(r *http.Request) string {
		if r.Method == http.MethodGet && len(r.URL.Path) > len("/orders/") && r.URL.Path[:len("/orders/")] == "/orders/" {
			return "/orders/{id}"
		}
		return "" // no path becomes a name
	})
	options.Param = func(r *http.Request, name string) (string, bool) {
		return r.URL.Path[len("/orders/"):], name == "id"
	}
	return nethttp.Middleware(engine, options)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.Path) <= len("/orders/") {
			http.NotFound(w, r)
		}
	}))
}

func TestRulesOnRoutesLimitRequestsOfAnyRouter(t *testing.T) {
	for name, test := range map[string]struct {
		build     func(*core.Engine, nethttp.Options) http.Handler
		resource  string
		unmatched bool // the middleware sees requests that no route matches
	}{
		"gorilla/mux": {gorilla, "GET:/orders/{id}", false},
		"httprouter":  {julienschmidt, "GET:/orders/:id", false},
		"plain":       {plain, "GET:/orders/{id}", true},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(0, 0)), Logger: slog.New(slog.DiscardHandler)})
			defer engine.Close()
			require.NoError(t, engine.Load(rules.Set{
				Flow:     []flow.Rule{{Name: "all", Resource: test.resource, Limit: 3}},
				HotParam: []hotparam.Rule{{Name: "each", Resource: test.resource, Param: rule.StringsOf("param:id"), Limit: 2}},
			}))
			handler := test.build(engine, nethttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var statuses []int
			for _, id := range []int{1, 1, 1, 2, 3} {
				statuses = append(statuses, get(handler, fmt.Sprintf("/orders/%d", id)))
			}
			assert.Equal(t, []int{200, 200, 429, 200, 429}, statuses)
			assert.Equal(t, http.StatusNotFound, get(handler, "/nothing"))
			assert.EqualValues(t, 3, engine.Resource(test.resource).Snapshot().Passed)
			assert.Equal(t, test.unmatched, engine.Resource(nethttp.Unmatched).Snapshot().Passed > 0)
			assert.Empty(t, log.String())
		})
	}
}

func get(handler http.Handler, path string) int {
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return response.Code
}
