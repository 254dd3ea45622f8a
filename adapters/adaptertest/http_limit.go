package adaptertest

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

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
	h.limitedOrders(t, exactly, http.StatusTooManyRequests, func() {}).exactlyTheLimit(t, 3)
}

func neverMoreUnderWay(t *testing.T, h *HTTPHarness) {
	o := newOccupancy()
	h.limitedOrders(t, isolated, http.StatusServiceUnavailable, func() { o.serve(t) }).neverMoreUnderWay(t, o)
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
