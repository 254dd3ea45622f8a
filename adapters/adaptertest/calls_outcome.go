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
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func callsOutcomeTests() []callsTest {
	return []callsTest{
		{"failures are those of what is called", nil, callsFailures},
		{"errors of the client are no failures", []Feature{ClientErrors}, callsClientErrors},
		{"calls that their callers cancel are ignored", []Feature{Cancellation}, callsCancelled},
		{"calls that meet their deadline have failed", []Feature{Cancellation}, callsMeetTheirDeadline},
		{"refusals of an inner guard are ignored", []Feature{NestedGuards}, callsInnerGuard},
		{"Failure decides what is a failure", nil, callsFailureDecides},
		{"a breaker stops calls of what fails", nil, callsBreaker},
	}
}

func callsWaitTests() []callsTest {
	return []callsTest{
		{"waiting calls pass on time", nil, callsPassOnTime},
		{"callers that cancel while they wait free their places", []Feature{Cancellation}, callsFreeTheirPlaces},
		{"exactly the limit passes under concurrency", nil, callsExactlyTheLimit},
		{"never more than the limit are under way", nil, callsNeverMoreUnderWay},
	}
}

func callsFailures(t *testing.T, h *CallsHarness) {
	for reply, want := range map[Reply]Outcome{Answered: Succeeded, Broken: Failed} {
		p := new(Probe)
		_ = h.open(t, p.NewEngine(t), CallsOptions{}, func() Reply { return reply })(t.Context())
		p.requireOutcome(t, h.Timeout, want)
	}
}

func callsClientErrors(t *testing.T, h *CallsHarness) {
	p := new(Probe)
	_ = h.open(t, p.NewEngine(t), CallsOptions{}, func() Reply { return NotFoundReply })(t.Context())
	p.requireOutcome(t, h.Timeout, Succeeded)
}

func callsCancelled(t *testing.T, h *CallsHarness) {
	p := new(Probe)
	here := make(chan struct{})
	call := h.open(t, p.NewEngine(t), CallsOptions{}, func() Reply {
		close(here)
		return Silent
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		hold(t, here)
		leave()
	}()
	require.Error(t, call(ctx))
	p.requireOutcome(t, h.Timeout, Ignored)
}

func callsMeetTheirDeadline(t *testing.T, h *CallsHarness) {
	for within := 30 * time.Millisecond; ; within *= 2 {
		p := new(Probe)
		var arrived atomic.Bool
		call := h.open(t, p.NewEngine(t), CallsOptions{}, func() Reply {
			arrived.Store(true)
			return Silent
		})
		ctx, cancel := context.WithTimeout(t.Context(), within)
		err := call(ctx)
		cancel()
		require.Error(t, err)
		if !arrived.Load() && within < h.Timeout {
			continue // the machine is busy
		}
		p.requireOutcome(t, h.Timeout, Failed)
		return
	}
}

func callsInnerGuard(t *testing.T, h *CallsHarness) {
	outer, inner := new(Probe), &Probe{Reason: rule.Unavailable, RefuseAfter: time.Second}
	call := h.connect(t, answered, CallsGuard{Engine: outer.NewEngine(t)}, CallsGuard{Engine: inner.NewEngine(t)})
	require.ErrorIs(t, call(t.Context()), core.ErrBlocked)
	outer.requireOutcome(t, h.Timeout, Ignored)
}

func callsFailureDecides(t *testing.T, h *CallsHarness) {
	var seen atomic.Int64
	p := new(Probe)
	call := h.open(t, p.NewEngine(t), CallsOptions{Failure: func(err error) bool {
		if err != nil {
			seen.Add(1)
		}
		return false
	}}, func() Reply { return Broken })
	_ = call(t.Context())
	p.requireOutcome(t, h.Timeout, Succeeded)
	assert.Positive(t, seen.Load(), "it gets the error")
}

func callsBreaker(t *testing.T, h *CallsHarness) {
	engine, virtual := NewEngine(t, rules.Set{Breaker: []breaker.Rule{{
		Name: "b", Match: "*", Strategy: breaker.ErrorCount, Threshold: 2, OpenFor: time.Second, Probes: 1,
	}}})
	var arrived atomic.Int64
	var healthy atomic.Bool
	call := h.open(t, engine, CallsOptions{}, func() Reply {
		arrived.Add(1)
		if healthy.Load() {
			return Answered
		}
		return Broken
	})
	for range 5 {
		_ = call(t.Context())
	}
	assert.EqualValues(t, 2, arrived.Load(), "then it is open")
	healthy.Store(true)
	virtual.Advance(time.Second)
	require.NoError(t, call(t.Context()))
	require.NoError(t, call(t.Context()))
}

func callsPassOnTime(t *testing.T, h *CallsHarness) {
	engine, virtual := NewEngine(t, rules.Set{})
	var arrived atomic.Int64
	call := h.open(t, engine, CallsOptions{}, func() Reply {
		arrived.Add(1)
		return Answered
	})
	require.NoError(t, engine.Load(queue(h.ResourceOf())))
	require.NoError(t, call(t.Context()))
	done := make(chan error, 1)
	go func() { done <- call(t.Context()) }()
	requireTimer(t, h.Timeout, virtual)
	virtual.Advance(time.Second - 1)
	assert.EqualValues(t, 1, arrived.Load())
	virtual.Advance(1)
	require.NoError(t, receive(t, h.Timeout, done))
	assert.EqualValues(t, 1, requireEnded(t, h.Timeout, engine, h.ResourceOf(), 2).Waited)
}

func callsFreeTheirPlaces(t *testing.T, h *CallsHarness) {
	engine, virtual := NewEngine(t, rules.Set{})
	call := h.open(t, engine, CallsOptions{}, answered)
	require.NoError(t, engine.Load(queue(h.ResourceOf())))
	require.NoError(t, call(t.Context()))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan error, 1)
	go func() { left <- call(ctx) }()
	requireTimer(t, h.Timeout, virtual)
	leave()
	require.ErrorIs(t, receive(t, h.Timeout, left), context.Canceled)
	requireNoneUnderWay(t, h.Timeout, []*core.Engine{engine})
	next := make(chan error, 1)
	go func() { next <- call(t.Context()) }()
	requireTimer(t, h.Timeout, virtual)
	virtual.Advance(time.Second) // that of the one that has left
	require.NoError(t, receive(t, h.Timeout, next))
}

func callsExactlyTheLimit(t *testing.T, h *CallsHarness) {
	const callers, each, limit = 8, 25, 50
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Match: "*", Limit: limit}}})
	var arrived, passed, refused atomic.Int64
	call := h.open(t, engine, CallsOptions{}, func() Reply {
		arrived.Add(1)
		return Answered
	})
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range each {
				if err := call(t.Context()); err == nil {
					passed.Add(1)
				} else if assert.ErrorIs(t, err, core.ErrBlocked) {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, limit, passed.Load())
	assert.EqualValues(t, callers*each-limit, refused.Load())
	assert.EqualValues(t, limit, arrived.Load())
	assert.Zero(t, requireEnded(t, h.Timeout, engine, h.ResourceOf(), limit).Failed)
}

func callsNeverMoreUnderWay(t *testing.T, h *CallsHarness) {
	const callers, limit = 8, 3
	engine, _ := NewEngine(t, rules.Set{Isolation: []isolation.Rule{{Match: "*", Limit: limit}}})
	var arrived, refused atomic.Int64
	full, free := make(chan struct{}, callers), make(chan struct{})
	call := h.open(t, engine, CallsOptions{}, func() Reply {
		arrived.Add(1)
		full <- struct{}{}
		hold(t, free)
		return Answered
	})
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if err := call(t.Context()); err != nil && assert.ErrorIs(t, err, core.ErrBlocked) {
				refused.Add(1)
			}
		})
	}
	for range limit {
		receive(t, h.Timeout, full)
	}
	assert.Eventually(t, func() bool { return refused.Load() == callers-limit }, h.Timeout, interval)
	close(free)
	all.Wait()
	assert.EqualValues(t, limit, arrived.Load())
	require.NoError(t, call(t.Context()), "places are free again")
}
