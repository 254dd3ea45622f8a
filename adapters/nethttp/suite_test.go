package nethttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness()) }

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness()) }

func harness() adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Serve: serveSuite,
		Direct: func(_ testing.TB, s adaptertest.Server) func(*http.Request) func() {
			handler := handlerOf(s)
			return func(r *http.Request) func() {
				writer := &discardWriter{http.Header{}}
				return func() { handler.ServeHTTP(writer, r) }
			}
		},
		PassAllocs: 2, // the recorder, and a second look-up in the mux
		Lacks: map[adaptertest.Feature]string{
			adaptertest.HandlerErrors: "handlers of net/http return none",
			adaptertest.StatusErrors:  "handlers of net/http return none",
		},
	}
}

func serveSuite(t *testing.T, s adaptertest.Server) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handlerOf(s))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func handlerOf(s adaptertest.Server) http.Handler {
	mux := http.NewServeMux()
	for _, route := range s.Routes {
		mux.HandleFunc(route.Method+" "+route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			_ = route.Handle(exchange{request{r}, w}) // of Respond and others: the client has gone
		})
	}
	var handler http.Handler = mux
	for i := len(s.Guards) - 1; i >= 0; i-- {
		handler = nethttp.Middleware(s.Guards[i].Engine, suiteOptions(&s.Guards[i].Options))(handler)
	}
	if s.Recovered == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if value := recover(); value != nil {
				s.Recovered(value)
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		handler.ServeHTTP(w, r)
	})
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
func (r request) Param(name string) string  { return r.r.PathValue(name) }

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

func TestConformanceOfTheTransport(t *testing.T) {
	var resource string
	adaptertest.Calls(t, adaptertest.CallsHarness{
		Open: func(t *testing.T, c adaptertest.CallsClient) adaptertest.CallFunc {
			server := httptest.NewUnstartedServer(remote(c.Remote))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.Start()
			t.Cleanup(server.Close)
			transport := server.Client().Transport
			for i := len(c.Guards) - 1; i >= 0; i-- {
				transport = guardedTransport(transport, &c.Guards[i])
			}
			client := &http.Client{Transport: transport}
			resource = "GET:" + server.Listener.Addr().String()
			return func(ctx context.Context) error {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
				if err != nil {
					return err
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				defer response.Body.Close()
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					return err
				}
				return statusError(response.StatusCode)
			}
		},
		ResourceOf: func() string { return resource },
	})
}

// statusError is an error for a status from 400 up.
func statusError(status int) error {
	if status < http.StatusBadRequest {
		return nil
	}
	return nethttp.StatusError(status)
}

// remote answers requests as the suite says.
func remote(reply func() adaptertest.Reply) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch reply() {
		case adaptertest.Answered:
			ok(w, r)
		case adaptertest.NotFoundReply:
			w.WriteHeader(http.StatusNotFound)
		case adaptertest.Broken:
			w.WriteHeader(http.StatusBadGateway)
		case adaptertest.Busy:
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		case adaptertest.Silent:
			<-r.Context().Done()
		}
	})
}

func guardedTransport(base http.RoundTripper, g *adaptertest.CallsGuard) *nethttp.Transport {
	o := &g.Options
	transport := &nethttp.Transport{
		Base: base, Engine: g.Engine, Resource: ofContext(o.Resource), Tokens: ofContext(o.Tokens),
		Attributes: ofContext(o.Attributes), Throttle: o.Throttle, RetryBudgets: o.RetryBudgets,
	}
	if o.Failure != nil {
		transport.Failure = func(status int, err error) bool {
			if err == nil {
				err = statusError(status)
			}
			return o.Failure(err)
		}
	}
	return transport
}

func ofContext[T any](option func(context.Context) T) func(*http.Request) T {
	if option == nil {
		return nil
	}
	return func(r *http.Request) T { return option(r.Context()) }
}
