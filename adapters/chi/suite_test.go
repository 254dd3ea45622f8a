package penstockchi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockchi "github.com/penstock-go/penstock/adapters/chi"
)

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness("use")) }

func TestConformanceBelowAMount(t *testing.T) { adaptertest.HTTP(t, harness("mount")) }

func TestConformanceAroundARouter(t *testing.T) {
	h := harness("around")
	h.Lacks[adaptertest.HeadOfGet] = "GetHead changes the method in the router"
	adaptertest.HTTP(t, h)
}

func TestConformanceOfAGroup(t *testing.T) {
	h := harness("group")
	h.Lacks[adaptertest.Unmatched] = "the middleware of the group sees the requests of its routes only"
	adaptertest.HTTP(t, h)
}

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness("use")) }

// harness describes chi with the middleware at a place.
func harness(place string) adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Handler: func(s adaptertest.Server) http.Handler { return handlerOf(s, place) },
		Pattern: func(pattern string) string {
			if fixed, ok := strings.CutSuffix(pattern, "{path...}"); ok {
				return fixed + "*"
			}
			return pattern
		},
		PassAllocs: 1, // the recorder
		Lacks: map[adaptertest.Feature]string{
			adaptertest.HandlerErrors: "handlers of net/http return none",
			adaptertest.StatusErrors:  "handlers of net/http return none",
		},
	}
}

func handlerOf(s adaptertest.Server, place string) http.Handler {
	var guards chi.Middlewares
	for i := range s.Guards {
		guards = append(guards, penstockchi.Middleware(s.Guards[i].Engine, adaptertest.HandlerOptions(&s.Guards[i].Options, newExchange)))
	}
	router := chi.NewRouter()
	if s.Recovered != nil && place != "around" {
		router.Use(adaptertest.HandlerRecovery(s.Recovered))
	}
	router.Use(middleware.GetHead)
	routes := func(r chi.Router) {
		if place == "use" || place == "mount" {
			r.Use(guards...)
		}
		for _, route := range s.Routes {
			h := harness(place)
			to := r
			if place == "group" {
				to = r.With(guards...)
			}
			to.MethodFunc(route.Method, h.Pattern(route.Pattern), func(w http.ResponseWriter, r *http.Request) {
				_ = route.Handle(newExchange(w, r)) // of Respond and others: the client has gone
			})
		}
	}
	if place == "mount" {
		router.Route("/", routes)
	} else {
		routes(router)
	}
	if place != "around" {
		return router
	}
	var handler http.Handler = router
	for _, guard := range slices.Backward(guards) {
		handler = guard(handler)
	}
	if s.Recovered != nil {
		handler = adaptertest.HandlerRecovery(s.Recovered)(handler)
	}
	return handler
}

// exchange is a request of the suite with its response.
type exchange struct{ adaptertest.HandlerExchange }

func (x exchange) Param(name string) string { return chi.URLParam(x.R, name) }

func newExchange(w http.ResponseWriter, r *http.Request) adaptertest.Exchange {
	return exchange{adaptertest.HandlerExchange{W: w, R: r}}
}
