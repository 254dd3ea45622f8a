package nethttp_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
)

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness()) }

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness()) }

func harness() adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Handler:    handlerOf,
		PassAllocs: 2, // the recorder, and a second look-up in the mux
		Lacks: map[adaptertest.Feature]string{
			adaptertest.HandlerErrors: "handlers of net/http return none",
			adaptertest.StatusErrors:  "handlers of net/http return none",
		},
	}
}

func handlerOf(s adaptertest.Server) http.Handler {
	mux := http.NewServeMux()
	for _, route := range s.Routes {
		mux.HandleFunc(route.Method+" "+route.Pattern, func(w http.ResponseWriter, r *http.Request) {
			_ = route.Handle(exchange(w, r)) // of Respond and others: the client has gone
		})
	}
	var handler http.Handler = mux
	for i := len(s.Guards) - 1; i >= 0; i-- {
		handler = nethttp.Middleware(s.Guards[i].Engine, adaptertest.HandlerOptions(&s.Guards[i].Options, exchange))(handler)
	}
	if s.Recovered != nil {
		handler = adaptertest.HandlerRecovery(s.Recovered)(handler)
	}
	return handler
}

func exchange(w http.ResponseWriter, r *http.Request) adaptertest.Exchange {
	return adaptertest.HandlerExchange{W: w, R: r}
}

func TestConformanceOfTheTransport(t *testing.T) {
	var resource string
	adaptertest.Calls(t, adaptertest.CallsHarness{
		Open: func(t *testing.T, c adaptertest.CallsClient) adaptertest.CallFunc {
			server := adaptertest.ServeHandler(t, remote(c.Remote))
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
		case adaptertest.Rejected:
			w.WriteHeader(http.StatusServiceUnavailable)
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
