package adaptertest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func httpContextTests() []httpTest {
	return []httpTest{
		{"handlers reach the guard of their request", nil, handlersReachTheirGuard},
		{"what a handler ignores is ignored whatever it answers", nil, handlersIgnore},
	}
}

func rpcContextTests() []rpcTest {
	return []rpcTest{
		{"handlers reach the guard of their call", nil, each(rpcHandlersReachTheirGuard, AtServer)},
		{"what a handler ignores is ignored whatever it replies", nil, each(rpcHandlersIgnore, AtServer)},
	}
}

// settledLimit returns rules of a resource that count its tokens: a limit of a hundred, and a shadow
// rule that lets nothing pass.
func settledLimit(resource string) rules.Set {
	return rules.Set{Flow: []flow.Rule{
		{Name: "tokens", Resource: resource, Limit: 100, Window: time.Minute},
		{Name: "later", Resource: resource, Shadow: true, Window: time.Minute},
	}}
}

// requireGuard settles the call of a context again and again, as handlers of streams do.
func requireGuard(t *testing.T, ctx context.Context, engine *core.Engine, kept *context.Context) { //nolint:revive // the test comes first
	t.Helper()
	if would := core.GuardFrom(ctx).WouldBlock(); assert.NotNil(t, would, "the shadow rule") {
		assert.Equal(t, "later", would.Rule)
	}
	derived, cancel := context.WithCancel(ctx)
	defer cancel()
	for n := 10; n < 100; n += 10 {
		assert.Equal(t, core.Settlement{Known: true, Left: int64(100 - n)}, core.Settle(derived, n))
	}
	assert.NoError(t, engine.Do(derived, "further down", func(ctx context.Context) error {
		assert.False(t, core.Settle(ctx, 1000).Known, "the guard is that of the innermost call")
		return nil
	}))
	assert.True(t, core.Settle(derived, 100).UsedUp())
	assert.EqualValues(t, 58, core.GuardFrom(ctx).Settle(42).Left)
	*kept = ctx
}

// requireSettled checks what requireGuard has left.
func requireSettled(t *testing.T, engine *core.Engine, resource string, kept context.Context) { //nolint:revive // the test comes first
	t.Helper()
	require.NotNil(t, kept, "the handler did not run")
	require.Nil(t, core.GuardFrom(kept), "the call has ended")
	assert.False(t, core.Settle(kept, 7).Known)
	for _, r := range engine.Resource(resource).Snapshot().Rules {
		if r.Name == "tokens" {
			assert.EqualValues(t, 58, r.Quota.Remaining)
		}
	}
}

func handlersReachTheirGuard(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, settledLimit(h.orders()))
	var kept context.Context
	c := h.serveOrders(t, engine, Options{}, func(x Exchange) error {
		requireGuard(t, x.Context(), engine, &kept)
		return ok(x)
	})
	require.NoError(t, c.served(t.Context(), "/orders/7"))
	requireEnded(t, h.Timeout, engine, h.orders(), 1)
	requireSettled(t, engine, h.orders(), kept)
}

func handlersIgnore(t *testing.T, h *HTTPHarness) {
	p := new(Probe)
	c := h.serveOrders(t, p.NewEngine(t), Options{}, func(x Exchange) error {
		assert.True(t, core.MarkIgnored(x.Context()))
		return x.Respond(http.StatusInternalServerError, "this is no failure")
	})
	require.Equal(t, http.StatusInternalServerError, c.get("/orders/7").status)
	p.requireOutcome(t, h.Timeout, Ignored)
}

func rpcHandlersReachTheirGuard(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, settledLimit(c.resource()))
	var kept context.Context
	call := c.serve(t, engine, RPCOptions{}, func(ctx context.Context) error {
		requireGuard(t, ctx, engine, &kept)
		return nil
	})
	require.NoError(t, call(t.Context()))
	requireEnded(t, c.Timeout, engine, c.resource(), 1)
	requireSettled(t, engine, c.resource(), kept)
}

func rpcHandlersIgnore(t *testing.T, c rpcCase) {
	p := new(Probe)
	call := c.serve(t, p.NewEngine(t), RPCOptions{}, func(ctx context.Context) error {
		assert.True(t, core.MarkIgnored(ctx))
		return c.Error(rpc.Internal, 0)
	})
	require.Error(t, call(t.Context()))
	p.requireOutcome(t, c.Timeout, Ignored)
}
