package adaptertest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/rules"
)

func rpcWaitTests() []rpcTest {
	return []rpcTest{
		{"waiting calls pass on time", nil, each(waitingCallsPassOnTime)},
		{"callers that cancel while they wait free their places", []Feature{Cancellation}, each(callersThatCancelFreeTheirPlaces)},
		{"calls whose context has ended take nothing", []Feature{Cancellation}, each(rpcTakeNothingOnceEnded, AtClient)},
		{"calls whose handlers wait are not under way for an adaptive rule", nil, each(callsWhoseHandlersWait, AtServer)},
		{"calls that wait when the engine is closed are answered with Unavailable", nil, each(rpcWaitingWhenClosed)},
		{"exactly the limit passes under concurrency", nil, each(rpcExactlyTheLimit)},
		{"never more than the limit are under way", nil, each(rpcNeverMoreUnderWay)},
		{"a breaker is opened by failures only", []Feature{Cancellation}, each(rpcBreaker)},
	}
}

// limited starts a server with one guard, whose resource has these rules.
func (c rpcCase) limited(t *testing.T, set func(resource string) rules.Set, refusal rpc.Code, serve func()) limitedCalls {
	t.Helper()
	engine, virtual := NewEngine(t, set(c.resource()))
	served := new(atomic.Int64)
	call := c.serve(t, engine, RPCOptions{}, func(context.Context) error {
		served.Add(1)
		serve()
		return nil
	})
	return limitedCalls{
		engine: engine, clock: virtual, timeout: c.Timeout, resource: c.resource(), served: served,
		call:      func(ctx context.Context) error { return call(ctx) },
		isRefusal: func(err error) bool { return c.answer(err).Code == refusal },
	}
}

func callsWhoseHandlersWait(t *testing.T, c rpcCase) {
	engine := enginePool(t)
	call := c.serve(t, engine, RPCOptions{}, func(ctx context.Context) error { return askPool(ctx, engine) })
	requireNotUnderWay(t, c.Timeout, engine, c.resource(), func(ctx context.Context) error { return call(ctx) })
}

func waitingCallsPassOnTime(t *testing.T, c rpcCase) {
	c.limited(t, queue, rpc.ResourceExhausted, func() {}).passOnTime(t)
}

func callersThatCancelFreeTheirPlaces(t *testing.T, c rpcCase) {
	if c.at == AtServer {
		missing(c.Lacks).need(t, WaitingDisconnects)
	}
	left := c.limited(t, queue, rpc.ResourceExhausted, func() {}).freeTheirPlaces(t)
	assert.Equal(t, rpc.Canceled, c.answer(left).Code)
}

func rpcWaitingWhenClosed(t *testing.T, c rpcCase) {
	engine, virtual := NewEngine(t, queue(c.resource()))
	call := c.serve(t, engine, RPCOptions{}, succeed)
	require.NoError(t, call(t.Context()))
	done := make(chan error, 1)
	go func() { done <- call(t.Context()) }()
	requireTimer(t, c.Timeout, virtual)
	engine.Close()
	assert.Equal(t, rpc.Unavailable, c.answer(receive(t, c.Timeout, done)).Code)
}

func rpcTakeNothingOnceEnded(t *testing.T, c rpcCase) {
	c.limited(t, exactly, rpc.ResourceExhausted, func() {}).takeNothingOnceEnded(t)
}

func rpcExactlyTheLimit(t *testing.T, c rpcCase) {
	c.limited(t, exactly, rpc.ResourceExhausted, func() {}).exactlyTheLimit(t, 1)
}

func rpcNeverMoreUnderWay(t *testing.T, c rpcCase) {
	o := newOccupancy()
	c.limited(t, isolated, rpc.Unavailable, func() { o.serve(t) }).neverMoreUnderWay(t, o)
}

func rpcBreaker(t *testing.T, c rpcCase) {
	engine, virtual := NewEngine(t, rules.Set{Breaker: []breaker.Rule{{
		Resource: c.resource(), Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 1,
	}}})
	state := func() string { return engine.Explain(c.resource())[0].State }
	next := make(chan func(context.Context) error, 1)
	made := c.serve(t, engine, RPCOptions{}, func(ctx context.Context) error { return receive(t, c.Timeout, next)(ctx) })
	ended := 0
	call := func(ctx context.Context, end func(context.Context) error) {
		next <- end
		// A rule learns that the call before has ended after the statistics do. Until then the call before
		// may have the only probe.
		for start := time.Now(); len(next) > 0 && time.Since(start) < c.Timeout; {
			_ = made(ctx)
		}
		ended++
		requireEnded(t, c.Timeout, engine, c.resource(), ended)
	}
	leave := func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		call(ctx, func(ctx context.Context) error {
			cancel() // the context of the caller
			hold(t, ctx.Done())
			return ctx.Err()
		})
	}
	leave()
	require.Equal(t, breaker.Closed, state())
	call(t.Context(), func(context.Context) error { return c.Error(rpc.Internal, 0) })
	require.Equal(t, breaker.Open, state())
	virtual.Advance(time.Second)
	leave()
	leave()
	require.Equal(t, breaker.HalfOpen, state())
	call(t.Context(), succeed)
	assert.Equal(t, breaker.Closed, state())
}
