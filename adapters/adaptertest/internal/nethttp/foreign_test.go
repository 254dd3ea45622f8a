package nethttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// failingWriter is a ResponseWriter of another middleware that fails.
type failingWriter struct {
	http.ResponseWriter
	fail func()
}

func (w failingWriter) Header() http.Header {
	w.fail()
	return w.ResponseWriter.Header()
}

// The place of a request is free again, whatever fails on its way.
func TestRequestThatFailsKeepsNoPlace(t *testing.T) {
	type request struct {
		writer, handler, failure func()
	}
	nothing := func() {}
	for way, fail := range map[string]func(){"panic": func() { panic("failed") }, "Goexit": runtime.Goexit} {
		for name, r := range map[string]request{
			"writer":  {fail, nothing, nothing},
			"handler": {nothing, fail, nothing},
			"Failure": {nothing, nothing, fail},
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				engine := core.New(core.Config{})
				defer engine.Close()
				require.NoError(t, engine.Load(rules.Set{Isolation: []isolation.Rule{{Resource: "r", Limit: 1}}}))
				guarded := nethttp.Middleware(engine, nethttp.Options{
					Resource: func(*http.Request) string { return "r" },
					Fields:   nethttp.Fields{Always: true},
					Failure:  func(int, error) bool { r.failure(); return false },
				})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					r.handler()
					w.WriteHeader(http.StatusTeapot)
				}))
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					guarded.ServeHTTP(failingWriter{httptest.NewRecorder(), r.writer}, httptest.NewRequest(http.MethodGet, "/", nil))
				}()
				<-done
				assert.Zero(t, engine.Resource("r").Snapshot().InFlight)
				guard, err := engine.Entry(t.Context(), "r")
				require.NoError(t, err)
				guard.Exit()
			})
		}
	}
}

type endlessBody struct{ closed chan struct{} }

func (b endlessBody) Read([]byte) (int, error) { <-b.closed; return 0, context.Canceled }
func (endlessBody) Close() error               { return nil }

// A caller that forgets the body of a response, or leaves it, keeps the place no longer than its context lasts.
func TestCallOfATransportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := core.New(core.Config{})
		defer engine.Close()
		transport := &nethttp.Transport{
			Engine: engine, Resource: func(*http.Request) string { return "r" },
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: endlessBody{}}, nil
			}),
		}
		inFlight := func() int64 { return engine.Resource("r").Snapshot().InFlight }
		send := func(ctx context.Context) *http.Response {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/", nil)
			require.NoError(t, err)
			response, err := transport.RoundTrip(request)
			require.NoError(t, err)
			return response
		}
		ctx, cancel := context.WithCancel(t.Context())
		forgotten := send(ctx)
		late, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_ = send(late) //nolint:bodyclose // what is tested
		closed := send(late)
		require.NoError(t, closed.Body.Close())
		assert.EqualValues(t, 2, inFlight())
		cancel()
		synctest.Wait()
		assert.EqualValues(t, 1, inFlight())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Zero(t, inFlight())
		require.NoError(t, forgotten.Body.Close(), "later")
		totals := engine.Resource("r").Snapshot().Totals
		assert.EqualValues(t, 3, totals.Completed)
		assert.EqualValues(t, 1, totals.Failed, "the one that was too late")
	})
}

// failingBody is the body of a response that fails.
type failingBody struct{ read, close func() }

func (b failingBody) Read([]byte) (int, error) { b.read(); return 0, nil }
func (b failingBody) Close() error             { b.close(); return nil }

func TestCallWhoseBodyFailsHoldsNothing(t *testing.T) {
	t.Parallel()
	nothing := func() {}
	for way, fail := range map[string]func(){"panic": func() { panic("failed") }, "Goexit": runtime.Goexit} {
		for name, body := range map[string]failingBody{"Read": {fail, nothing}, "Close": {nothing, fail}} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				engine := core.New(core.Config{})
				defer engine.Close()
				transport := &nethttp.Transport{Engine: engine, Base: roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
				})}
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://host/", http.NoBody).WithContext(context.Background())) //nolint:bodyclose // it is, below
				require.NoError(t, err)
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					_, _ = response.Body.Read(nil)
					_ = response.Body.Close()
				}()
				<-done
				assert.Zero(t, engine.Resource("GET:host").Snapshot().InFlight)
				assert.EqualValues(t, 1, engine.Resource("GET:host").Snapshot().Failed)
			})
		}
	}
}
