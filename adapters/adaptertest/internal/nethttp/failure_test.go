package nethttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// leave makes a request and leaves when ready is closed.
func leave(t *testing.T, server *httptest.Server, ready <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/7", http.NoBody)
	require.NoError(t, err)
	go func() {
		<-ready
		cancel()
	}()
	response, err := server.Client().Do(request)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	require.ErrorIs(t, err, context.Canceled)
}

func TestErrorAfterTheClientDisconnectedIsNotAFailure(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter){
		"panic to abort": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"broken write": func(w http.ResponseWriter) {
			if _, err := io.Copy(w, io.LimitReader(endless{}, 1<<30)); err != nil {
				panic(http.ErrAbortHandler)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			here := make(chan struct{}, 1)
			ready := make(chan struct{})
			server := serve(t, guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
				here <- struct{}{}
				<-r.Context().Done()
				answer(w)
			}))
			go func() {
				<-here
				close(ready)
			}()
			leave(t, server, ready)
			assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

// proxyTo is a server that passes requests on to the backend, as calls of the
// resource orders.
func proxyTo(t *testing.T, engine *core.Engine, backend http.HandlerFunc) *httptest.Server {
	t.Helper()
	target, err := url.Parse(serve(t, backend).URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	return serve(t, guardOrders(engine, nethttp.Options{}, proxy.ServeHTTP))
}

func TestProxyWhoseClientDisconnectsIsNotAFailure(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	begun := make(chan struct{})
	server := proxyTo(t, engine, func(w http.ResponseWriter, r *http.Request) {
		ok(w, r)
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	leave(t, server, begun)
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

// breakOff sends half of a body and leaves.
func breakOff(t *testing.T, server *httptest.Server) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST /orders/7 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestClientThatDisconnectsWhileSendingIsNotAFailure(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	options := nethttp.Options{Resource: func(*http.Request) string { return orders }}
	t.Run("handler", func(t *testing.T) {
		engine, _ := newEngine(t, core.Config{})
		breakOff(t, serve(t, nethttp.Middleware(engine, options)(http.HandlerFunc(answer))))
		assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
	})
	t.Run("proxy", func(t *testing.T) {
		engine, _ := newEngine(t, core.Config{})
		target, err := url.Parse(serve(t, http.HandlerFunc(answer)).URL)
		require.NoError(t, err)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		breakOff(t, serve(t, nethttp.Middleware(engine, options)(proxy)))
		assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
	})
}

// What is read ahead shows that the client has left before the call enters: it takes nothing.
func TestClientThatDisconnectsWhileItsBodyIsReadAheadMakesNoCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	refused := make(chan error, 1)
	breakOff(t, serve(t, nethttp.Middleware(engine, nethttp.Options{
		Resource: func(*http.Request) string { return orders }, BufferBody: 1 << 10,
		EntryError: func(_ http.ResponseWriter, _ *http.Request, err error) { refused <- err },
	})(http.HandlerFunc(ok))))
	require.ErrorIs(t, <-refused, context.Canceled)
	assert.Zero(t, totals(engine, orders).Passed)
}

func TestBodyThatTheServerCannotReadIsAFailure(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, nethttp.Middleware(engine, nethttp.Options{
		Resource: func(*http.Request) string { return orders },
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, r.Body.Close())
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})))
	response, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("an order"))
	require.NoError(t, err)
	response.Body.Close()
	assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

func TestProxyWhoseBackendClosesTheConnectionIsAFailure(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := proxyTo(t, engine, func(w http.ResponseWriter, r *http.Request) {
		ok(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	response, err := server.Client().Get(server.URL + "/orders/7")
	require.NoError(t, err)
	_, err = io.ReadAll(response.Body)
	require.Error(t, err)
	response.Body.Close()
	assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

func TestCallThatEndsAtItsDeadlineWithAFailureCounts(t *testing.T) {
	for name, end := range map[string]func(http.ResponseWriter){
		"status": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"panic":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			guarded := guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				end(w)
			})
			var limit time.Duration
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithTimeout(r.Context(), limit)
				defer cancel()
				guarded.ServeHTTP(w, r.WithContext(ctx))
			}))
			untilOnePasses(engine, orders, func(soon time.Duration) {
				limit = soon
				if response, err := server.Client().Get(server.URL + "/orders/7"); err == nil {
					response.Body.Close()
				}
			})
			assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

// untilOnePasses makes calls that have a little more time each until one has come to the engine in time, however busy
// the machine is.
func untilOnePasses(engine *core.Engine, resource string, call func(soon time.Duration)) {
	for soon := time.Millisecond; engine.Resource(resource).Snapshot().Passed == 0; soon *= 2 {
		call(soon)
	}
}

func TestCanceledIsTrueOnlyBeforeTheDeadline(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	assert.False(t, core.Canceled(canceled))
	cancel()
	assert.True(t, core.Canceled(canceled))

	inTime, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	assert.True(t, core.Canceled(inTime))

	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	cancel()
	assert.False(t, core.Canceled(late), "the deadline came first")

	assert.False(t, core.Canceled(lateCancel{canceled}), "cancelled, but seen when the deadline has passed")
}

// lateCancel is a cancelled context whose deadline has passed.
type lateCancel struct{ context.Context }

func (lateCancel) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestFailureOptionDecidesWhatIsAFailure(t *testing.T) {
	type ending struct {
		status int
		err    error
	}
	var seen []ending
	options := nethttp.Options{Failure: func(status int, err error) bool {
		seen = append(seen, ending{status, err})
		return status == http.StatusNotFound
	}}
	engine, _ := newEngine(t, core.Config{})
	statuses := []int{http.StatusOK, http.StatusNotFound, http.StatusInternalServerError}
	next, leave := 0, func() {}
	handler := guardOrders(engine, options, func(w http.ResponseWriter, _ *http.Request) {
		leave()
		if next > 0 { // the first writes nothing
			w.WriteHeader(statuses[next])
		}
		next++
	})
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	for range statuses {
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	next = 1
	ctx, cancel := context.WithCancel(t.Context())
	leave = cancel
	handler.ServeHTTP(httptest.NewRecorder(), request.WithContext(ctx))
	assert.Equal(t, []ending{{200, nil}, {404, nil}, {500, nil}, {404, nethttp.ErrCanceled}}, seen)
	assert.EqualValues(t, 2, totals(engine, orders).Failed)
}

func TestOutgoingCallCancelledByItsCallerIsNotAFailure(t *testing.T) {
	for name, flush := range map[string]bool{"before the response": false, "while reading its body": true} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			here := make(chan struct{})
			server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if flush {
					ok(w, r)
					w.(http.Flusher).Flush()
				}
				close(here)
				<-r.Context().Done()
			}))
			client, resource := dial(server, engine)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-here
				cancel()
			}()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
			require.NoError(t, err)
			response, err := client.Do(request)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			require.ErrorIs(t, err, context.Canceled)
			assert.Zero(t, adaptertest.RequireEnded(t, engine, resource, 1).Failed)
		})
	}
}

func TestOutgoingCallThatTakesTooLongIsAFailure(t *testing.T) {
	for name, limit := range map[string]func(*http.Client, *http.Request, time.Duration) *http.Request{
		"deadline of the context": func(_ *http.Client, r *http.Request, soon time.Duration) *http.Request {
			ctx, cancel := context.WithTimeout(r.Context(), soon)
			t.Cleanup(cancel)
			return r.WithContext(ctx)
		},
		"timeout of the client": func(c *http.Client, r *http.Request, soon time.Duration) *http.Request {
			c.Timeout = soon
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			server := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
			client, resource := dial(server, engine)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			require.NoError(t, err)
			untilOnePasses(engine, resource, func(soon time.Duration) {
				_, err = client.Do(limit(client, request, soon)) //nolint:bodyclose // there is no response
				require.Error(t, err)
			})
			assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, resource, 1).Failed)
		})
	}
}

func TestOptionsOfATransportTellWhatACallTakesAndWhatIsAFailure(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, flow.Rule{Match: "*", Limit: 20, Window: time.Hour})
	lost := errors.New("lost")
	var calls atomic.Int64
	transport := &nethttp.Transport{
		Engine: engine,
		Base: roundTrip(func(*http.Request) (*http.Response, error) {
			if calls.Add(1) == 1 {
				return &http.Response{StatusCode: http.StatusNotFound}, nil
			}
			return nil, lost
		}),
		Tokens:  func(r *http.Request) int { return int(r.ContentLength) },
		Failure: func(status int, err error) bool { return status == http.StatusNotFound || errors.Is(err, lost) },
	}
	request := httptest.NewRequest(http.MethodGet, "http://host/", http.NoBody)
	request.ContentLength = 7
	_, err := transport.RoundTrip(request) //nolint:bodyclose // there is no body
	require.NoError(t, err)
	resources := engine.Snapshot().Resources
	require.Len(t, resources, 1)
	assert.EqualValues(t, 13, resources[0].Rules[0].Quota.Remaining)
	assert.EqualValues(t, 1, resources[0].Failed)
	_, err = transport.RoundTrip(request) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, lost)
	assert.EqualValues(t, 2, totals(engine, resources[0].Name).Failed)
}

func TestPanicInTheFailureOptionEndsTheCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	judge := func(int, error) bool { panic("no opinion") }
	handler := guardOrders(engine, nethttp.Options{Failure: judge}, ok)
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	assert.PanicsWithValue(t, "no opinion", func() { handler.ServeHTTP(httptest.NewRecorder(), request) })
	assert.Zero(t, totals(engine, orders).InFlight)

	transport := &nethttp.Transport{
		Base: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}),
		Engine: engine, Resource: func(*http.Request) string { return "out" }, Failure: judge,
	}
	assert.PanicsWithValue(t, "no opinion", func() { _, _ = transport.RoundTrip(request) }) //nolint:bodyclose // there is no response
	assert.Zero(t, totals(engine, "out").InFlight)
}
