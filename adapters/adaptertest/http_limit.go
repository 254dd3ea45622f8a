package adaptertest

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

func httpLimitTests() []httpTest {
	return []httpTest{
		{"exactly the limit passes under concurrency", nil, exactlyTheLimitPasses},
		{"never more than the limit are under way", nil, neverMoreUnderWay},
		{"two guards of an engine are one call", []Feature{NestedGuards}, twoGuardsAreOneCall},
	}
}

func exactlyTheLimitPasses(t *testing.T, h *HTTPHarness) {
	const clients, each, limit = 8, 25, 50
	engine, virtual := NewEngine(t, h.limited(limit))
	var handled atomic.Int64
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		handled.Add(1)
		return ok(x)
	})
	for second := range int64(3) {
		var passed, refused atomic.Int64
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range each {
					switch c.get("/orders/7").status {
					case http.StatusOK:
						passed.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					}
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, limit, passed.Load())
		assert.EqualValues(t, clients*each-limit, refused.Load())
		assert.Equal(t, limit*(second+1), handled.Load())
		virtual.Advance(time.Second)
	}
	ended := requireEnded(t, h.Timeout, engine, h.orders(), 3*limit)
	assert.EqualValues(t, 3*limit, ended.Passed)
	assert.EqualValues(t, 3*(clients*each-limit), ended.Blocked)
	assert.Zero(t, ended.Failed)
}

func neverMoreUnderWay(t *testing.T, h *HTTPHarness) {
	const clients, limit = 8, 3
	engine, _ := NewEngine(t, rules.Set{Isolation: []isolation.Rule{{Resource: h.orders(), Limit: limit}}})
	var under, most, refused atomic.Int64
	full, free := make(chan struct{}, clients), make(chan struct{})
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		now := under.Add(1)
		defer under.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		full <- struct{}{}
		hold(t, free)
		return ok(x)
	})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			if c.get("/orders/7").status == http.StatusServiceUnavailable {
				refused.Add(1)
			}
		})
	}
	for range limit {
		receive(t, h.Timeout, full)
	}
	assert.Eventually(t, func() bool { return refused.Load() == clients-limit }, h.Timeout, interval)
	close(free)
	all.Wait()
	assert.EqualValues(t, limit, most.Load())
	requireEnded(t, h.Timeout, engine, h.orders(), limit)
	assert.Equal(t, http.StatusOK, c.get("/orders/7").status, "places are free again")
}

func twoGuardsAreOneCall(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, h.limited(2))
	other, _ := NewEngine(t, rules.Set{})
	c := h.serve(t, Server{
		Guards: []Guard{{Engine: engine}, {Engine: other}, {Engine: engine}},
		Routes: ordersRoutes(ok),
	})
	var statuses []int
	for range 3 {
		statuses = append(statuses, c.get("/orders/7").status)
	}
	assert.Equal(t, []int{200, 200, 429}, statuses)
	assert.EqualValues(t, 2, requireEnded(t, h.Timeout, engine, h.orders(), 2).Passed)
	assert.EqualValues(t, 2, requireEnded(t, h.Timeout, other, h.orders(), 2).Passed, "another engine has a call of its own")
}
