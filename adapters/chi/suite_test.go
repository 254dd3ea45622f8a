package penstockchi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockchi "github.com/penstock-go/penstock/adapters/chi"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
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
		Serve: func(t *testing.T, s adaptertest.Server) string {
			t.Helper()
			server := httptest.NewUnstartedServer(handlerOf(s, place))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.Start()
			t.Cleanup(server.Close)
			return server.URL
		},
		Pattern: func(pattern string) string {
			if fixed, ok := strings.CutSuffix(pattern, "{path...}"); ok {
				return fixed + "*"
			}
			return pattern
		},
		Direct: func(_ testing.TB, s adaptertest.Server) func(*http.Request) func() {
			handler := handlerOf(s, place)
			return func(r *http.Request) func() {
				writer := &discardWriter{http.Header{}}
				return func() { handler.ServeHTTP(writer, r) }
			}
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
		guards = append(guards, penstockchi.Middleware(s.Guards[i].Engine, suiteOptions(&s.Guards[i].Options)))
	}
	router := chi.NewRouter()
	if s.Recovered != nil && place != "around" {
		router.Use(recovery(s.Recovered))
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
				_ = route.Handle(exchange{request{r}, w}) // of Respond and others: the client has gone
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
		handler = recovery(s.Recovered)(handler)
	}
	return handler
}

// recovery is what Recoverer of chi does, and tells of panics.
func recovery(recovered func(any)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if value := recover(); value != nil {
					recovered(value)
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// suiteOptions returns options of the suite as those of the middleware.
func suiteOptions(o *adaptertest.Options) nethttp.Options {
	options := nethttp.Options{
		Resource: adapt(o.Resource), Origin: adapt(o.Origin), Tokens: adapt(o.Tokens), Attributes: adapt(o.Attributes),
		Priority: adapt(o.Priority), PriorityHeader: o.PriorityHeader, PriorityCallers: o.PriorityCallers,
		TrustedProxies: o.TrustedProxies, UseForwarded: o.UseForwarded, IPv6Prefix: o.IPv6Prefix,
		Failure: o.Failure, Fields: nethttp.Fields(o.Fields), BufferBody: o.BufferBody,
	}
	if trust := o.PriorityTrust; trust != nil {
		options.PriorityTrust = func(r *http.Request) (rule.Priority, bool) { return trust(request{r}) }
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(w http.ResponseWriter, r *http.Request, block *core.BlockError) {
			_ = blocked(exchange{request{r}, w}, block)
		}
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(w http.ResponseWriter, r *http.Request, err error) {
			_ = entryError(exchange{request{r}, w}, err)
		}
	}
	return options
}

func adapt[T any](option func(adaptertest.Request) T) func(*http.Request) T {
	if option == nil {
		return nil
	}
	return func(r *http.Request) T { return option(request{r}) }
}

// request is a request of the suite.
type request struct{ r *http.Request }

func (r request) Context() context.Context  { return r.r.Context() }
func (r request) Method() string            { return r.r.Method }
func (r request) Header(name string) string { return r.r.Header.Get(name) }
func (r request) Query(name string) string  { return r.r.URL.Query().Get(name) }
func (r request) Param(name string) string  { return chi.URLParam(r.r, name) }

// exchange is a request of the suite with its response.
type exchange struct {
	request
	w http.ResponseWriter
}

func (x exchange) Body() ([]byte, error)        { return io.ReadAll(x.r.Body) }
func (x exchange) SetHeader(name, value string) { x.w.Header().Set(name, value) }
func (x exchange) Refuse(err error) error       { nethttp.WriteProblem(x.w, err); return nil }

func (x exchange) Respond(status int, body string) error {
	x.w.WriteHeader(status)
	_, err := io.WriteString(x.w, body)
	return err
}

func (x exchange) Stream(status int, fn func(adaptertest.StreamWriter) error) error {
	x.w.WriteHeader(status)
	return fn(streamWriter{x.w.(io.StringWriter), http.NewResponseController(x.w)})
}

type streamWriter struct {
	io.StringWriter
	controller *http.ResponseController
}

func (w streamWriter) Flush() error { return w.controller.Flush() }

func (x exchange) Hijack(fn func(net.Conn)) error {
	hijacker, ok := x.w.(http.Hijacker)
	if !ok {
		return errors.New("the connection cannot be taken over")
	}
	conn, _, err := hijacker.Hijack()
	if err == nil {
		fn(conn)
	}
	return err
}
