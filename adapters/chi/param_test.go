package penstockchi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func rateLimit(resource string, limit float64) flow.Rule {
	return flow.Rule{Name: "reads", Resource: resource, Limit: limit}
}

// oneOfEachValue returns an engine that lets one call of each value of an attribute pass, and
// none without it.
func oneOfEachValue(tb testing.TB, key string) *core.Engine {
	tb.Helper()
	engine := newEngine(tb)
	require.NoError(tb, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Match: "*", Param: rule.StringsOf(key), Limit: 1e-6, Burst: 1, Missing: rule.MissingBlock},
	}}))
	return engine
}

func TestParametersOfTheRouteAreAttributesWhereverTheMiddlewareStands(t *testing.T) {
	for _, test := range []struct {
		key, path, same, other string // other values of the parameter differ; "" if there is none
	}{
		{"param:id", "/orders/7", "/orders/7", "/orders/8"},
		{"param:id", "/orders/a%2Fb", "/orders/%61%2Fb", "/orders/a%2Fc"},
		{"param:id", "/v1/items/7/parts/1", "/v1/items/7/parts/2", "/v1/items/8/parts/1"},
		{"param:part", "/v1/items/7/parts/1", "/v1/items/8/parts/1", "/v1/items/7/parts/2"},
		{"param:version", "/v1/files/a/versions/3", "/v1/files/b/versions/3", "/v1/files/a/versions/4"},
		{"param:tenant", "/acme/of/x", "/acme/of/y", "/other/of/x"},
		{"param:*", "/tree/a/b", "/tree/a/b", "/tree/a"},
		{"param:*", "/acme/of/a/b", "/other/of/a/b", "/acme/of/a"},
	} {
		for _, places := range []string{"root", "agroup route routeGroup ", "mount ", "mountGroup", "around"} {
			engine := oneOfEachValue(t, test.key)
			m := penstockchi.Middleware(engine, nethttp.Options{})
			handler := service(placed(m, places), ok)
			if places == "around" {
				handler = m(handler)
			}
			first := get(handler, http.MethodGet, test.path)
			require.Equal(t, http.StatusOK, first, "%s %s", places, test.path)
			if len(adaptertest.Called(engine)) == 0 {
				continue // no middleware there
			}
			assert.Equal(t, http.StatusTooManyRequests, get(handler, http.MethodGet, test.same), "%s %s", places, test.same)
			assert.Equal(t, http.StatusOK, get(handler, http.MethodGet, test.other), "%s %s", places, test.other)
		}
	}
}

func TestParametersThatTheRouteDoesNotHaveAreNoAttributes(t *testing.T) {
	for key, path := range map[string]string{"param:id": "/tree/a", "param:*": "/v1/items/7", "param:x": "/nothing"} {
		engine := oneOfEachValue(t, key)
		handler := service(placed(penstockchi.Middleware(engine, nethttp.Options{}), "root"), ok)
		assert.Equal(t, http.StatusForbidden, get(handler, http.MethodGet, path), key)
	}
}

func TestOptionsOfTheProgramGoBeforeTheDefaults(t *testing.T) {
	engine := oneOfEachValue(t, "param:id")
	router := chi.NewRouter()
	route := penstockchi.RouteResource()
	router.Use(penstockchi.Middleware(engine, nethttp.Options{
		Resource: func(r *http.Request) string {
			if r.URL.Path == "/healthz" {
				return ""
			}
			return route(r)
		},
		Param: func(r *http.Request, name string) (string, bool) {
			return r.Header.Get(name), true
		},
	}))
	router.Get("/healthz", ok)
	router.Get("/orders/{id}", ok)
	assert.Equal(t, http.StatusOK, get(router, http.MethodGet, "/healthz"))
	assert.Equal(t, http.StatusOK, get(router, http.MethodGet, "/orders/7"))
	assert.Equal(t, http.StatusTooManyRequests, get(router, http.MethodGet, "/orders/8"), "both have no such header")
	requireCalled(t, engine, orders)
}

// chi itself makes the path and the pattern of a mounted router.
func TestFindingTheRouteAllocatesOnlyWhatChiDoesForMountedRouters(t *testing.T) {
	if raceEnabled {
		t.Skip("with -race, pools drop objects at random, which allocates")
	}
	find := penstockchi.RouteResource()
	for _, test := range []struct {
		path, want string
		mounted    float64
	}{
		{"/orders/7", orders, 0},
		{"/v1/items/7", "GET:/v1/items/{id}", 1},
		{"/v1/files/a/versions/3", "GET:/v1/files/{name}/versions/{version}", 2},
		{"/nothing", nethttp.Unmatched, 0},
	} {
		handler := service(placed(func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				for range 10 { // names are cached after some look-ups
					assert.Equal(t, test.want, find(r))
				}
				assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { find(r) }), 2*test.mounted, test.path)
			})
		}, "root"), ok)
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, test.path, http.NoBody))
	}
}
