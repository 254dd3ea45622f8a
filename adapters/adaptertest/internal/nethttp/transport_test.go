package nethttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// dial returns a client of the server, guarded by the engine, and the name of
// the resource that its GET requests are calls of.
func dial(server *httptest.Server, engine *core.Engine) (client *http.Client, resource string) {
	return &http.Client{Transport: &nethttp.Transport{Base: server.Client().Transport, Engine: engine}},
		"GET:" + strings.TrimPrefix(server.URL, "http://")
}

func TestOutgoingCallLastsUntilItsBodyIsRead(t *testing.T) {
	for name, finish := range map[string]func(io.ReadCloser) error{
		"read to the end": func(body io.ReadCloser) error {
			_, err := io.Copy(io.Discard, body)
			return err
		},
		"closed early": func(body io.ReadCloser) error { return body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			client, resource := dial(serve(t, http.HandlerFunc(ok)), engine)
			response, err := client.Get("http://" + strings.TrimPrefix(resource, "GET:"))
			require.NoError(t, err)
			defer response.Body.Close()
			assert.EqualValues(t, 1, totals(engine, resource).InFlight)
			require.NoError(t, finish(response.Body))
			after := totals(engine, resource)
			assert.Zero(t, after.InFlight)
			assert.Zero(t, after.Failed)
			require.NoError(t, response.Body.Close())
			assert.EqualValues(t, 1, totals(engine, resource).Completed, "ended once")
		})
	}
}

func TestOutgoingCallWithoutABodyEndsAtOnce(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, statusHandler(http.StatusNoContent))
	client, resource := dial(server, engine)
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	assert.EqualValues(t, 1, totals(engine, resource).Completed)
	assert.NoError(t, response.Body.Close())
}

func TestRefusedRequestIsNotSent(t *testing.T) {
	var arrived atomic.Int64
	server := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	resource := "POST:" + strings.TrimPrefix(server.URL, "http://")
	engine, _ := newEngine(t, core.Config{}, rateLimit("writes", resource, 1))
	client, _ := dial(server, engine)
	response, err := client.Post(server.URL, "text/plain", strings.NewReader("first"))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	body := &closeCounter{Reader: strings.NewReader("second")}
	_, err = client.Post(server.URL, "text/plain", body) //nolint:bodyclose // there is no response
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	assert.Equal(t, "writes", block.Rule)
	assert.Positive(t, block.RetryAfter)
	assert.Positive(t, body.closed.Load(), "a RoundTripper has to close the body")
	assert.EqualValues(t, 1, arrived.Load())
}

type closeCounter struct {
	io.Reader
	closed atomic.Int64
}

func (c *closeCounter) Close() error {
	c.closed.Add(1)
	return nil
}

func TestFailuresOfOutgoingCalls(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		failed  uint64
	}{
		{"success", ok, 0},
		{"the client's own mistake", statusHandler(http.StatusNotFound), 0},
		{"failure of the server", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			ok(w, r)
		}, 1},
		{"failure without a body", statusHandler(http.StatusServiceUnavailable), 1},
		{"no response", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1},
		{"body cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			server := serve(t, test.handler)
			client, resource := dial(server, engine)
			if response, err := client.Get(server.URL); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				assert.NoError(t, response.Body.Close())
			}
			after := totals(engine, resource)
			assert.Equal(t, test.failed, after.Failed)
			assert.EqualValues(t, 1, after.Completed)
			assert.Zero(t, after.InFlight)
		})
	}
}

// roundTrip is a RoundTripper of one function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPanicOfTheBaseIsAFailureAndIsPassedOn(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	transport := &nethttp.Transport{Engine: engine, Base: roundTrip(func(*http.Request) (*http.Response, error) {
		panic("boom")
	})}
	request := httptest.NewRequest(http.MethodGet, "http://host/", http.NoBody)
	assert.PanicsWithValue(t, "boom", func() { _, _ = transport.RoundTrip(request) }) //nolint:bodyclose // there is no response
	after := totals(engine, "GET:host")
	assert.Zero(t, after.InFlight)
	assert.EqualValues(t, 1, after.Failed)
}

func TestUpgradedConnectionStaysWritable(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.CopyN(conn, buffer, 4)
	}))
	client, resource := dial(server, engine)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Connection", "upgrade")
	request.Header.Set("Upgrade", "echo")
	response, err := client.Do(request)
	require.NoError(t, err)
	_, err = io.WriteString(response.Body.(io.Writer), "ping")
	require.NoError(t, err)
	echo := make([]byte, 4)
	_, err = io.ReadFull(response.Body, echo)
	require.NoError(t, err)
	assert.Equal(t, "ping", string(echo))
	assert.EqualValues(t, 1, totals(engine, resource).InFlight)
	require.NoError(t, response.Body.Close())
	assert.Zero(t, totals(engine, resource).InFlight)
}

func TestBodyMayBeClosedWhileItIsRead(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(endless{}, 1<<20))
	}))
	client, resource := dial(server, engine)
	for range 20 {
		response, err := client.Get(server.URL)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, response.Body) })
		wg.Go(func() { _ = response.Body.Close() })
		wg.Wait()
	}
	after := totals(engine, resource)
	assert.Zero(t, after.InFlight)
	assert.EqualValues(t, 20, after.Completed)
}

func TestHostsAreBoundedByTheEngine(t *testing.T) {
	engine, _ := newEngine(t, core.Config{MaxResources: 10})
	transport := &nethttp.Transport{Engine: engine, Base: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK}, nil
	})}
	for i := range 1000 {
		request := httptest.NewRequest(fmt.Sprintf("M%d", i), fmt.Sprintf("http://host%d/", i), http.NoBody)
		_, err := transport.RoundTrip(request) //nolint:bodyclose // there is no body
		require.NoError(t, err)
	}
	assert.Len(t, adaptertest.Called(engine), 11, "ten names and the one that the others share")
}

func TestOutgoingResourceCanBeNamedOrLeftUnguarded(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, http.HandlerFunc(ok))
	transport := &nethttp.Transport{
		Base: server.Client().Transport, Engine: engine,
		Resource: func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") },
	}
	client := &http.Client{Transport: transport}
	for _, path := range []string{"/billing", "/"} {
		response, err := client.Get(server.URL + path)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	assert.Equal(t, []string{"billing"}, adaptertest.Called(engine))
}

func TestZeroTransportUsesTheDefaults(t *testing.T) {
	server := serve(t, http.HandlerFunc(ok))
	client := &http.Client{Transport: new(nethttp.Transport)}
	response, err := client.Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	resource := "GET:" + strings.TrimPrefix(server.URL, "http://")
	assert.EqualValues(t, 1, totals(penstock.Default(), resource).Completed)
}

func TestErrorOfTheBaseIsReturned(t *testing.T) {
	lost := errors.New("lost")
	engine, _ := newEngine(t, core.Config{})
	client := &http.Client{Transport: &nethttp.Transport{
		Engine: engine,
		Base:   roundTrip(func(*http.Request) (*http.Response, error) { return nil, lost }),
	}}
	_, err := client.Get("http://host/") //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, lost)
	assert.EqualValues(t, 1, totals(engine, "GET:host").Failed)
}
