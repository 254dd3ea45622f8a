package nethttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// clientLeaves returns a context whose caller leaves as soon as the handler is called.
func clientLeaves(t *testing.T, handler http.HandlerFunc) (context.Context, http.HandlerFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		handler(w, r)
	}
}

// serveOnce has the handler of a guarded route answer one request. A panic is caught.
func serveOnce(ctx context.Context, engine *core.Engine, options nethttp.Options, handler http.HandlerFunc) {
	defer func() { _ = recover() }()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/orders/7", http.NoBody)
	guardOrders(engine, options, handler).ServeHTTP(httptest.NewRecorder(), request)
}

func refusal() error {
	return &core.BlockError{Resource: "db", Kind: "isolation", Rule: "pool", Reason: rule.Overloaded}
}

// passRefusalOn answers with a refusal that the handler got.
func passRefusalOn(w http.ResponseWriter, _ *http.Request) {
	nethttp.WriteProblem(w, fmt.Errorf("query: %w", refusal()))
}

func TestOutcomeOfARequestForRules(t *testing.T) {
	for _, test := range []struct {
		name    string
		left    bool // the client, when the handler was called
		handler http.HandlerFunc
		want    adaptertest.Outcome
	}{
		{"refusal that is answered otherwise", false, func(w http.ResponseWriter, _ *http.Request) {
			nethttp.MarkRefused(w)
			w.WriteHeader(http.StatusBadGateway)
		}, adaptertest.Ignored},
		{"closed engine further down", false, func(w http.ResponseWriter, _ *http.Request) {
			nethttp.WriteProblem(w, core.ErrClosed)
		}, adaptertest.Failed},
		{"client left, panic", true, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, adaptertest.Ignored},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := new(adaptertest.Probe)
			ctx, handler := t.Context(), test.handler
			if test.left {
				ctx, handler = clientLeaves(t, handler)
			}
			serveOnce(ctx, p.NewEngine(t), nethttp.Options{}, handler)
			assert.Equal(t, []adaptertest.Outcome{test.want}, p.Outcomes())
		})
	}
}

func TestFailureOptionDecidesAboutRefusalsAndClientsThatLeft(t *testing.T) {
	p := new(adaptertest.Probe)
	engine := p.NewEngine(t)
	var asked []error
	options := nethttp.Options{Failure: func(_ int, err error) bool {
		asked = append(asked, err)
		return true
	}}
	serveOnce(t.Context(), engine, options, passRefusalOn)
	ctx, handler := clientLeaves(t, ok)
	serveOnce(ctx, engine, options, handler)
	assert.Equal(t, []error{core.ErrBlocked, nethttp.ErrCanceled}, asked)
	assert.Equal(t, []adaptertest.Outcome{adaptertest.Failed, adaptertest.Failed}, p.Outcomes())
}

func TestOutcomeOfAnOutgoingCallForRules(t *testing.T) {
	cut := io.NopCloser(io.MultiReader(strings.NewReader("so"), failingReader{}))
	for _, test := range []struct {
		name   string
		left   bool // the caller, before the call ended
		status int
		body   io.ReadCloser
		err    error
		want   adaptertest.Outcome
	}{
		{"answered", false, 200, http.NoBody, nil, adaptertest.Succeeded},
		{"status 429", false, 429, http.NoBody, nil, adaptertest.Succeeded},
		{"status 503", false, 503, http.NoBody, nil, adaptertest.Failed},
		{"no response", false, 0, nil, errors.New("connection refused"), adaptertest.Failed},
		{"body that breaks off", false, 200, cut, nil, adaptertest.Failed},
		{"deadline", false, 0, nil, context.DeadlineExceeded, adaptertest.Failed},
		{"refused by a transport further in", false, 0, nil, fmt.Errorf("retry: %w", refusal()), adaptertest.Ignored},
		{"cancelled without a response", true, 0, nil, context.Canceled, adaptertest.Ignored},
		{"cancelled with a status 500", true, 500, http.NoBody, nil, adaptertest.Ignored},
		{"cancelled while the body is read", true, 200, cut, nil, adaptertest.Ignored},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := new(adaptertest.Probe)
			transport := &nethttp.Transport{Engine: p.NewEngine(t), Base: roundTrip(func(*http.Request) (*http.Response, error) {
				if test.err != nil {
					return nil, test.err
				}
				return &http.Response{StatusCode: test.status, Body: test.body}, nil
			})}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			request := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://host/", http.NoBody)
			transport.Base = leaving(transport.Base, test.left, leave)
			if response, err := transport.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			assert.Equal(t, []adaptertest.Outcome{test.want}, p.Outcomes())
		})
	}
}

// leaving returns a transport whose caller leaves when the call was sent, if it does.
func leaving(base http.RoundTripper, leaves bool, leave func()) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if leaves {
			leave()
		}
		return base.RoundTrip(r)
	})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestFailureByItsStatusStaysOneWhenTheCallerLeavesLater(t *testing.T) {
	p := new(adaptertest.Probe)
	ctx, leave := context.WithCancel(t.Context())
	transport := &nethttp.Transport{Engine: p.NewEngine(t), Base: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusInternalServerError, Body: io.NopCloser(failingReader{})}, nil
	})}
	response, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://host/", http.NoBody))
	require.NoError(t, err)
	leave()
	_, err = io.ReadAll(response.Body)
	require.Error(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, []adaptertest.Outcome{adaptertest.Failed}, p.Outcomes())
}

// loadBreaker puts a breaker before all calls that opens at the first failure.
func loadBreaker(t *testing.T, engine *core.Engine) {
	t.Helper()
	require.NoError(t, engine.Load(rules.Set{Breaker: []breaker.Rule{{
		Name: "b", Match: "*", Shared: true, Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 1,
	}}}))
}

// stateOf returns the state of the breaker of [loadBreaker].
func stateOf(t *testing.T, engine *core.Engine) string {
	t.Helper()
	explained := engine.Explain(orders)
	require.Len(t, explained, 1)
	return explained[0].State
}

func TestOutgoingCallsThatAreCancelledNeitherOpenNorCloseABreaker(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{})
	loadBreaker(t, engine)
	send := func(status int, left bool) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		transport := &nethttp.Transport{Engine: engine, Base: leaving(roundTrip(func(r *http.Request) (*http.Response, error) {
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return &http.Response{StatusCode: status, Body: http.NoBody}, nil
		}), left, leave)}
		if response, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://host/", http.NoBody)); err == nil {
			response.Body.Close()
		}
	}
	send(0, true)
	require.Equal(t, breaker.Closed, stateOf(t, engine))
	send(http.StatusInternalServerError, false)
	require.Equal(t, breaker.Open, stateOf(t, engine))
	virtual.Advance(time.Second)
	send(0, true)
	send(0, true)
	require.Equal(t, breaker.HalfOpen, stateOf(t, engine))
	send(http.StatusOK, false)
	assert.Equal(t, breaker.Closed, stateOf(t, engine))
}
