package adaptertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

func rpcWaitTests() []rpcTest {
	return []rpcTest{
		{"waiting calls pass on time", nil, each(waitingCallsPassOnTime)},
		{"callers that cancel while they wait free their places", []Feature{Cancellation}, each(callersThatCancelFreeTheirPlaces)},
		{"calls that wait when the engine is closed are answered with Unavailable", nil, each(rpcWaitingWhenClosed)},
		{"exactly the limit passes under concurrency", nil, each(rpcExactlyTheLimit)},
		{"never more than the limit are under way", nil, each(rpcNeverMoreUnderWay)},
		{"a breaker is opened by failures only", []Feature{Cancellation}, each(rpcBreaker)},
	}
}

func waitingCallsPassOnTime(t *testing.T, c rpcCase) {
	engine, virtual := NewEngine(t, queue(c.resource()))
	var handled atomic.Int64
	call := c.serve(t, engine, RPCOptions{}, func(context.Context) error { handled.Add(1); return nil })
	require.NoError(t, call(t.Context()))
	done := make(chan error, 1)
	go func() { done <- call(t.Context()) }()
	requireTimer(t, c.Timeout, virtual)
	virtual.Advance(time.Second - 1)
	assert.EqualValues(t, 1, handled.Load())
	virtual.Advance(1)
	require.NoError(t, receive(t, c.Timeout, done))
	assert.EqualValues(t, 1, requireEnded(t, c.Timeout, engine, c.resource(), 2).Waited)
}

func callersThatCancelFreeTheirPlaces(t *testing.T, c rpcCase) {
	if c.at == AtServer {
		missing(c.Lacks).need(t, WaitingDisconnects)
	}
	engine, virtual := NewEngine(t, queue(c.resource()))
	call := c.serve(t, engine, RPCOptions{}, succeed)
	require.NoError(t, call(t.Context()))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan error, 1)
	go func() { left <- call(ctx) }()
	requireTimer(t, c.Timeout, virtual)
	leave()
	assert.Equal(t, Canceled, c.answer(receive(t, c.Timeout, left)).Code)
	requireNoneUnderWay(t, c.Timeout, []*core.Engine{engine})
	next := make(chan error, 1)
	go func() { next <- call(t.Context()) }()
	requireTimer(t, c.Timeout, virtual)
	virtual.Advance(time.Second) // that of the one that has left
	require.NoError(t, receive(t, c.Timeout, next))
	requireEnded(t, c.Timeout, engine, c.resource(), 2)
}

func rpcWaitingWhenClosed(t *testing.T, c rpcCase) {
	engine, virtual := NewEngine(t, queue(c.resource()))
	call := c.serve(t, engine, RPCOptions{}, succeed)
	require.NoError(t, call(t.Context()))
	done := make(chan error, 1)
	go func() { done <- call(t.Context()) }()
	requireTimer(t, c.Timeout, virtual)
	engine.Close()
	assert.Equal(t, Unavailable, c.answer(receive(t, c.Timeout, done)).Code)
}

func rpcExactlyTheLimit(t *testing.T, c rpcCase) {
	const callers, each, limit = 10, 10, 37
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Resource: c.resource(), Limit: limit}}})
	call := c.serve(t, engine, RPCOptions{}, succeed)
	var passed, refused atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				switch code := c.answer(call(t.Context())).Code; code {
				case OK:
					passed.Add(1)
				case ResourceExhausted:
					refused.Add(1)
				default:
					assert.Fail(t, "neither passed nor refused", "code %d", code)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, limit, passed.Load())
	assert.EqualValues(t, callers*each-limit, refused.Load())
	ended := requireEnded(t, c.Timeout, engine, c.resource(), limit)
	assert.EqualValues(t, limit, ended.Passed)
	assert.EqualValues(t, callers*each-limit, ended.Blocked)
	assert.Zero(t, ended.Failed)
}

func rpcNeverMoreUnderWay(t *testing.T, c rpcCase) {
	const callers, limit = 8, 3
	engine, _ := NewEngine(t, rules.Set{Isolation: []isolation.Rule{{Resource: c.resource(), Limit: limit}}})
	var handled, refused atomic.Int64
	full, free := make(chan struct{}, callers), make(chan struct{})
	call := c.serve(t, engine, RPCOptions{}, func(context.Context) error {
		handled.Add(1)
		full <- struct{}{}
		hold(t, free)
		return nil
	})
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if c.answer(call(t.Context())).Code == Unavailable {
				refused.Add(1)
			}
		})
	}
	for range limit {
		receive(t, c.Timeout, full)
	}
	assert.Eventually(t, func() bool { return refused.Load() == callers-limit }, c.Timeout, interval)
	close(free)
	all.Wait()
	assert.EqualValues(t, limit, handled.Load())
	requireEnded(t, c.Timeout, engine, c.resource(), limit)
	require.NoError(t, call(t.Context()), "places are free again")
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
		_ = made(ctx)
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
	call(t.Context(), func(context.Context) error { return c.Error(Internal, 0) })
	require.Equal(t, breaker.Open, state())
	virtual.Advance(time.Second)
	leave()
	leave()
	require.Equal(t, breaker.HalfOpen, state())
	call(t.Context(), succeed)
	assert.Equal(t, breaker.Closed, state())
}
