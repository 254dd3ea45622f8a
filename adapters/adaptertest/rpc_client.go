package adaptertest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func rpcClientTests() []rpcTest {
	return []rpcTest{
		{"a throttle obeys the delay that a server asks for", []Feature{Throttling, RetryDelays}, each(throttleObeysTheServer, AtClient)},
		{"retries beyond the budget are not sent", []Feature{Throttling}, each(retriesBeyondTheBudget, AtClient)},
	}
}

func rpcDirectTests() []rpcTest {
	return []rpcTest{
		{"calls come to their rules before others compute", []Feature{Direct}, callsYield},
		{"passing and refusing allocate no more than they may", []Feature{Direct}, rpcAllocations},
	}
}

// newThrottle returns a throttle and retry budgets on a clock that does not advance by itself.
func newThrottle(tb testing.TB) (*outgoing.Throttle, *outgoing.RetryBudgets, *clock.Virtual) {
	tb.Helper()
	virtual := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{Clock: virtual, Seed: 7})
	require.NoError(tb, err)
	budgets, err := outgoing.NewRetryBudgets(outgoing.RetryOptions{Clock: virtual, Burst: 2})
	require.NoError(tb, err)
	return throttle, budgets, virtual
}

// throttleObeysTheServer has a guard of the server refuse calls: a server refuses streams
// before it sends anything.
func throttleObeysTheServer(t *testing.T, c rpcCase) {
	throttle, budgets, virtual := newThrottle(t)
	var arrived atomic.Int64
	engine, _ := NewEngine(t, rules.Set{})
	refusing := &Probe{RefuseAfter: 2 * time.Second}
	call := c.start(t, RPCServer{
		Handle:  succeed,
		Server:  []RPCGuard{{Engine: refusing.NewEngine(t)}},
		Arrived: func() { arrived.Add(1) },
	}, RPCGuard{engine, RPCOptions{Throttle: throttle, RetryBudgets: budgets}})
	assert.Equal(t, rpc.ResourceExhausted, c.answer(call(t.Context())).Code)
	err := call(t.Context())
	require.ErrorIs(t, err, outgoing.ErrPaused)
	require.ErrorIs(t, err, core.ErrBlocked)
	answer := c.answer(err)
	assert.Equal(t, rpc.Unavailable, answer.Code)
	assert.GreaterOrEqual(t, answer.RetryAfter, 2*time.Second)
	assert.EqualValues(t, 1, arrived.Load())
	virtual.Advance(5 * time.Second) // Retry-After may be 3 s, see nethttp.Spread
	assert.Equal(t, rpc.ResourceExhausted, c.answer(call(t.Context())).Code)
	assert.EqualValues(t, 2, arrived.Load())
}

func retriesBeyondTheBudget(t *testing.T, c rpcCase) {
	throttle, budgets, _ := newThrottle(t)
	var arrived atomic.Int64
	engine, _ := NewEngine(t, rules.Set{})
	call := c.start(t, RPCServer{
		Handle:  func(context.Context) error { return c.Error(rpc.Internal, 0) },
		Arrived: func() { arrived.Add(1) },
	}, RPCGuard{engine, RPCOptions{Throttle: throttle, RetryBudgets: budgets}})
	ctx := outgoing.WithRetries(t.Context())
	for range 3 { // the call, and a burst of two retries
		assert.Equal(t, rpc.Internal, c.answer(call(ctx)).Code)
	}
	err := call(ctx)
	require.ErrorIs(t, err, outgoing.ErrRetryBudget)
	assert.Equal(t, rpc.Unavailable, c.answer(err).Code)
	assert.EqualValues(t, 3, arrived.Load())
	assert.EqualValues(t, 3, requireEnded(t, c.Timeout, engine, c.resource(), 3).Passed, "a call that is not sent is none of the resource")
}

func callsYield(t *testing.T, h *RPCHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	checkYield(t, func(entering, handling func()) func() {
		return h.Direct(t, RPCServer{
			Server: []RPCGuard{{engine, RPCOptions{Resource: func(RPCCall) string {
				entering()
				return "compute"
			}}}},
			Handle: func(context.Context) error {
				handling()
				return nil
			},
		})
	})
}

func rpcAllocations(t *testing.T, h *RPCHarness) {
	bare := h.Direct(t, RPCServer{Handle: succeed})
	for _, test := range []struct {
		name  string
		limit float64
		most  int
	}{
		{"passing", 1e9, h.PassAllocs},
		{"refusing", 0, h.RefuseAllocs},
	} {
		engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Resource: h.Method(Unary), Limit: test.limit}}})
		CheckAllocs(t, test.most, h.Direct(t, RPCServer{Server: []RPCGuard{{Engine: engine}}, Handle: succeed}), bare, test.name)
	}
}

// BenchmarkRPC shows what a guard of a server adds to a unary call, beside the same without
// it. The harness must not lack [Direct].
func BenchmarkRPC(b *testing.B, h RPCHarness) {
	b.Helper()
	open, _ := NewEngine(b, rules.Set{Flow: []flow.Rule{{Resource: h.Method(Unary), Limit: 1e9}}})
	closed, _ := NewEngine(b, rules.Set{Flow: []flow.Rule{{Resource: h.Method(Unary), Limit: 0}}})
	for _, bench := range []struct {
		name   string
		guards []RPCGuard
	}{
		{"unguarded", nil},
		{"passed", []RPCGuard{{Engine: open}}},
		{"refused", []RPCGuard{{Engine: closed}}},
	} {
		call := h.Direct(b, RPCServer{Server: bench.guards, Handle: succeed})
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}
