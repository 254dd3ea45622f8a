package adaptertest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

func httpWaitTests() []httpTest {
	return []httpTest{
		{"waiting requests pass on time", nil, waitingRequestsPassOnTime},
		{"clients that leave while they wait free their places", []Feature{Disconnects}, clientsThatLeaveFreeTheirPlaces},
		{"clients with a body that leave while they wait free their places", []Feature{Disconnects, BodyBuffering}, clientsWithABody},
		{"requests whose handlers wait are not under way for an adaptive rule", nil, requestsWhoseHandlersWait},
		{"requests that wait when the engine is closed are answered with 503", nil, waitingWhenClosed},
	}
}

// limitedOrders starts a server with a guard whose resource has these rules.
func (h *HTTPHarness) limitedOrders(t *testing.T, set func(resource string) rules.Set, refusal int, serve func()) limitedCalls {
	t.Helper()
	engine, virtual := NewEngine(t, set(h.orders()))
	served := new(atomic.Int64)
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		served.Add(1)
		serve()
		return ok(x)
	})
	return limitedCalls{
		engine: engine, clock: virtual, timeout: h.Timeout, resource: h.orders(), served: served,
		call:      func(ctx context.Context) error { return c.served(ctx, "/orders/7") },
		isRefusal: func(err error) bool { return errors.Is(err, nethttp.StatusError(refusal)) },
	}
}

func requestsWhoseHandlersWait(t *testing.T, h *HTTPHarness) {
	engine := enginePool(t)
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		assert.NoError(t, askPool(x.Context(), engine))
		return ok(x)
	})
	requireNotUnderWay(t, h.Timeout, engine, h.orders(), func(ctx context.Context) error { return c.served(ctx, "/orders/7") })
}

func waitingRequestsPassOnTime(t *testing.T, h *HTTPHarness) {
	h.limitedOrders(t, queue, http.StatusTooManyRequests, func() {}).passOnTime(t)
}

func clientsThatLeaveFreeTheirPlaces(t *testing.T, h *HTTPHarness) {
	left := h.limitedOrders(t, queue, http.StatusTooManyRequests, func() {}).freeTheirPlaces(t)
	require.ErrorIs(t, left, context.Canceled, "the client should have left before it was answered")
}

func clientsWithABody(t *testing.T, h *HTTPHarness) {
	resource := h.resource(http.MethodPost, "/orders")
	engine, virtual := NewEngine(t, queue(resource))
	c := h.serve(t, Server{
		Guards: []Guard{{engine, Options{BufferBody: 1 << 10}}},
		Routes: []Route{{http.MethodPost, "/orders", func(x Exchange) error {
			body, err := x.Body()
			if err != nil {
				return err
			}
			return x.Respond(http.StatusOK, string(body))
		}}},
	})
	post := func(ctx context.Context) (body string, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/orders", strings.NewReader("an order"))
		if err != nil {
			return "", err
		}
		response, err := c.http.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		read, err := io.ReadAll(response.Body)
		return string(read), err
	}
	echoed, err := post(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "an order", echoed, "the handler reads what was buffered")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	gone := make(chan error, 1)
	go func() {
		_, err := post(ctx)
		gone <- err
	}()
	requireTimer(t, h.Timeout, virtual)
	leave()
	require.ErrorIs(t, receive(t, h.Timeout, gone), context.Canceled)
	requireNoneUnderWay(t, h.Timeout, []*core.Engine{engine})
	assert.EqualValues(t, 1, requireEnded(t, h.Timeout, engine, resource, 1).Passed)
}

func waitingWhenClosed(t *testing.T, h *HTTPHarness) {
	engine, virtual := NewEngine(t, queue(h.orders()))
	c := h.serveOrders(t, engine, Options{}, ok)
	c.get("/orders/1")
	answers := make(chan answer, 1)
	go func() { answers <- c.get("/orders/2") }()
	requireTimer(t, h.Timeout, virtual)
	engine.Close()
	assert.Equal(t, http.StatusServiceUnavailable, receive(t, h.Timeout, answers).status)
}
