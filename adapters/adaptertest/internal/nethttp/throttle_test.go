package nethttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// throttledClient is a client of a server whose throttle is on a clock that the test advances.
type throttledClient struct {
	*http.Client
	transport *nethttp.Transport
	engine    *core.Engine
	clock     *clock.Virtual
	url       string
}

func newThrottledClient(t *testing.T, handler http.Handler) *throttledClient {
	t.Helper()
	server := serve(t, handler)
	engine, virtual := newEngine(t, core.Config{})
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, Seed: 7})
	require.NoError(t, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Clock: virtual, Burst: 2})
	require.NoError(t, err)
	transport := &nethttp.Transport{
		Base: server.Client().Transport, Engine: engine, Throttle: throttle, RetryBudgets: budgets,
	}
	return &throttledClient{&http.Client{Transport: transport}, transport, engine, virtual, server.URL}
}

// get returns the status of the response.
func (c *throttledClient) get(ctx context.Context) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func (c *throttledClient) stats(t *testing.T) outgoing.TargetStats {
	t.Helper()
	targets := c.transport.Throttle.Stats().Targets
	require.Len(t, targets, 1)
	assert.Equal(t, strings.TrimPrefix(c.url, "http://"), targets[0].Target)
	return targets[0]
}

// TestServerThatServesAThirdIsAskedForTwoThirds counts on both sides.
func TestServerThatServesAThirdIsAskedForTwoThirds(t *testing.T) {
	const rate, capacity, seconds = 300, 100, 12
	var virtual *clock.Virtual
	var arrived, served atomic.Int64
	refill, tokens := clock.Instant(0), 0.0
	client := newThrottledClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		now := virtual.Now()
		tokens = min(tokens+now.Sub(refill).Seconds()*capacity, 20)
		refill = now
		if tokens < 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		tokens--
		served.Add(1)
	}))
	virtual = client.clock
	refill = virtual.Now()
	refused := 0
	for i := range seconds * rate {
		if i == 2*rate { // the throttle has found out
			refused = 0
			arrived.Store(0)
			served.Store(0)
		}
		status, err := client.get(t.Context())
		if err != nil {
			require.ErrorIs(t, err, outgoing.ErrThrottled)
			refused++
		} else {
			require.Contains(t, []int{http.StatusOK, http.StatusServiceUnavailable}, status)
		}
		client.clock.Advance(time.Second / rate)
	}
	const asked = (seconds - 2) * rate
	assert.EqualValues(t, asked, int64(refused)+arrived.Load(), "what is not refused here arrives")
	assert.InEpsilon(t, (seconds-2)*capacity, served.Load(), 0.05, "the server does what it can")
	assert.InEpsilon(t, 2*served.Load(), arrived.Load(), 0.08, "and is asked twice that")
	snapshot := totals(client.engine, "GET:"+strings.TrimPrefix(client.url, "http://"))
	assert.Zero(t, snapshot.Blocked, "no rule has refused a call")
	assert.Equal(t, client.stats(t).Accepted+client.stats(t).Rejected, snapshot.Passed, "refused calls are none of the resource")
}

func TestRetryAfterOfAServerIsObeyed(t *testing.T) {
	var arrived atomic.Int64
	client := newThrottledClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1) == 1 {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	status, err := client.get(t.Context())
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, status)
	_, err = client.get(t.Context())
	require.ErrorIs(t, err, outgoing.ErrPaused)
	var refusal *outgoing.Error
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, 6*time.Second, refusal.RetryAfter)
	critical := core.ContextWithPriority(t.Context(), rule.PriorityCritical)
	_, err = client.get(critical)
	require.NoError(t, err, "the server refused a normal one")
	client.clock.Advance(6 * time.Second)
	_, err = client.get(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 3, arrived.Load())
}

func TestRefusedRequestClosesItsBody(t *testing.T) {
	client := newThrottledClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	_, err := client.get(t.Context())
	require.NoError(t, err)
	body := &closeCounter{Reader: strings.NewReader("text")}
	_, err = client.Post(client.url, "text/plain", body) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, outgoing.ErrPaused)
	assert.Positive(t, body.closed.Load())
}

func TestServerThatCannotBeReachedRejects(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(ok))
	server.Close()
	client := newThrottledClient(t, http.HandlerFunc(ok))
	client.url = server.URL
	_, err := client.get(t.Context())
	require.Error(t, err)
	assert.EqualValues(t, 1, client.stats(t).Rejected)
}

func TestCancelledAndLocallyRefusedRequestsTellNothingOfTheTarget(t *testing.T) {
	client := newThrottledClient(t, http.HandlerFunc(ok))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.get(ctx)
	require.ErrorIs(t, err, context.Canceled)

	resource := "GET:" + strings.TrimPrefix(client.url, "http://")
	blocked, _ := newEngine(t, core.Config{}, rateLimit("none", resource, 0))
	client.transport.Engine = blocked
	_, err = client.get(t.Context())
	require.ErrorIs(t, err, core.ErrBlocked)
	closed, _ := newEngine(t, core.Config{})
	closed.Close()
	client.transport.Engine = closed
	_, err = client.get(t.Context())
	require.ErrorIs(t, err, core.ErrClosed)

	stats := client.stats(t)
	assert.Zero(t, stats.Accepted+stats.Rejected)
}

func TestPanickingTransportTellsNothingOfTheTarget(t *testing.T) {
	client := newThrottledClient(t, http.HandlerFunc(ok))
	client.transport.Base = roundTripper(func(*http.Request) (*http.Response, error) { panic("broken") })
	assert.PanicsWithValue(t, "broken", func() { _, _ = client.get(t.Context()) })
	stats := client.stats(t)
	assert.Zero(t, stats.Accepted+stats.Rejected)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRetriesBeyondTheBudgetAreNotSent(t *testing.T) {
	var arrived atomic.Int64
	client := newThrottledClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	ctx := outgoing.WithRetries(t.Context())
	for range 3 { // the call, and a burst of two retries
		_, err := client.get(ctx)
		require.NoError(t, err)
	}
	for range 5 {
		_, err := client.get(ctx)
		require.ErrorIs(t, err, outgoing.ErrRetryBudget)
	}
	assert.EqualValues(t, 3, arrived.Load())
}

func TestTargetAndAnswerCanBeChosen(t *testing.T) {
	client := newThrottledClient(t, http.HandlerFunc(ok))
	client.transport.Answer = func(response *http.Response, err error) outgoing.Answer {
		if err == nil && response.StatusCode == http.StatusOK {
			return outgoing.Answer{Result: outgoing.Rejected, RetryAfter: time.Second}
		}
		return outgoing.Answer{}
	}
	user := ""
	client.transport.Target = func(*http.Request) string { return user }
	for range 3 {
		_, err := client.get(t.Context())
		require.NoError(t, err, "a request without a target is not throttled")
	}
	for _, user = range []string{"ann", "bob"} {
		_, err := client.get(t.Context())
		require.NoError(t, err)
		_, err = client.get(t.Context())
		require.ErrorIs(t, err, outgoing.ErrPaused)
	}
	assert.Len(t, client.transport.Throttle.Stats().Targets, 2)
}

// TestHandlerThatPassesAThrottledCallOnIsUnavailable goes through two services.
func TestHandlerThatPassesAThrottledCallOnIsUnavailable(t *testing.T) {
	client := newThrottledClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	engine, _ := newEngine(t, core.Config{})
	handler := guardOrders(engine, nethttp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := client.get(r.Context()); err != nil {
			nethttp.WriteProblem(w, err)
		}
	})
	server := serve(t, handler)
	assert.Equal(t, http.StatusOK, get(t, server, "/orders/7").status)
	answer := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusServiceUnavailable, answer.status)
	assert.Contains(t, answer.body, "temporary-reduced-capacity")
	assert.Contains(t, answer.body, "try again in 6s")
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 2).Failed)
}

func TestThrottledRequestThatTimesOutRejects(t *testing.T) {
	client := newThrottledClient(t, http.HandlerFunc(ok))
	client.transport.Base = roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, context.DeadlineExceeded
	})
	_, err := client.get(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, core.ErrBlocked)
	assert.EqualValues(t, 1, client.stats(t).Rejected)
}
