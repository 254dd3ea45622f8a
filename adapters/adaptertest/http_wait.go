package adaptertest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func httpWaitTests() []httpTest {
	return []httpTest{
		{"waiting requests pass on time", nil, waitingRequestsPassOnTime},
		{"clients that leave while they wait free their places", []Feature{Disconnects}, clientsThatLeaveFreeTheirPlaces},
		{"clients with a body that leave while they wait free their places", []Feature{Disconnects, BodyBuffering}, clientsWithABody},
		{"requests that wait when the engine is closed are answered with 503", nil, waitingWhenClosed},
	}
}

// queue lets one call a second pass, and the others wait.
func queue(resource string) rules.Set {
	return rules.Set{Flow: []flow.Rule{
		{Name: "turns", Resource: resource, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute},
	}}
}

func waitingRequestsPassOnTime(t *testing.T, h *HTTPHarness) {
	engine, virtual := NewEngine(t, queue(h.orders()))
	var handled atomic.Int64
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		handled.Add(1)
		return ok(x)
	})
	assert.Equal(t, http.StatusOK, c.get("/orders/1").status)
	answers := make(chan answer, 1)
	go func() { answers <- c.get("/orders/2") }()
	requireTimer(t, h.Timeout, virtual)
	virtual.Advance(time.Second - 1)
	assert.EqualValues(t, 1, handled.Load())
	virtual.Advance(1)
	assert.Equal(t, http.StatusOK, receive(t, h.Timeout, answers).status)
	assert.EqualValues(t, 1, requireEnded(t, h.Timeout, engine, h.orders(), 2).Waited)
}

func clientsThatLeaveFreeTheirPlaces(t *testing.T, h *HTTPHarness) {
	engine, virtual := NewEngine(t, queue(h.orders()))
	var handled atomic.Int64
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		handled.Add(1)
		return ok(x)
	})
	c.get("/orders/1")
	ready := make(chan struct{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		c.leave("/orders/2", ready)
	}()
	requireTimer(t, h.Timeout, virtual)
	close(ready)
	receive(t, h.Timeout, left)
	requireNoneUnderWay(t, h.Timeout, []*core.Engine{engine})
	next := make(chan answer, 1)
	go func() { next <- c.get("/orders/3") }()
	requireTimer(t, h.Timeout, virtual)
	virtual.Advance(time.Second) // that of the one that has left
	assert.Equal(t, http.StatusOK, receive(t, h.Timeout, next).status)
	requireEnded(t, h.Timeout, engine, h.orders(), 2)
	assert.EqualValues(t, 2, handled.Load())
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
