package adaptertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
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
		{"options that panic hold nothing", nil, callsOptionsPanic},
		{"a breaker stops calls of what fails", nil, callsBreaker},
		{"rules count calls by their end", nil, func(t *testing.T, h *CallsHarness) {
			callsAreCountedByTheirEnd(t, h.Timeout, h.counted)
		}},
	}
}

func callsWaitTests() []callsTest {
	return []callsTest{
		{"waiting calls pass on time", nil, callsPassOnTime},
		{"callers that cancel while they wait free their places", []Feature{Cancellation}, callsFreeTheirPlaces},
		{"calls whose context has ended take nothing", []Feature{Cancellation}, callsTakeNothingOnceEnded},
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

// limited connects a client with one guard, whose resource then gets rules.
func (h *CallsHarness) limited(t *testing.T, set func(resource string) rules.Set, serve func()) limitedCalls {
	t.Helper()
	engine, virtual := NewEngine(t, rules.Set{})
	served := new(atomic.Int64)
	call := h.open(t, engine, CallsOptions{}, func() Reply {
		served.Add(1)
		serve()
		return Answered
	})
	require.NoError(t, engine.Load(set(h.ResourceOf())))
	return limitedCalls{
		engine: engine, clock: virtual, timeout: h.Timeout, resource: h.ResourceOf(), served: served, call: call,
		isRefusal: func(err error) bool { return errors.Is(err, core.ErrBlocked) },
	}
}

func callsPassOnTime(t *testing.T, h *CallsHarness) { h.limited(t, queue, func() {}).passOnTime(t) }

func callsFreeTheirPlaces(t *testing.T, h *CallsHarness) {
	require.ErrorIs(t, h.limited(t, queue, func() {}).freeTheirPlaces(t), context.Canceled)
}

func callsTakeNothingOnceEnded(t *testing.T, h *CallsHarness) {
	h.limited(t, exactly, func() {}).takeNothingOnceEnded(t)
}

func callsExactlyTheLimit(t *testing.T, h *CallsHarness) {
	h.limited(t, exactly, func() {}).exactlyTheLimit(t, 1)
}

func callsNeverMoreUnderWay(t *testing.T, h *CallsHarness) {
	o := newOccupancy()
	h.limited(t, isolated, func() { o.serve(t) }).neverMoreUnderWay(t, o)
}

// counted connects calls whose end is counted.
func (h *CallsHarness) counted(t *testing.T, engine *core.Engine, calls *countedCalls) (call func(), resource string) {
	do := h.open(t, engine, CallsOptions{}, func() Reply {
		if calls.serve() {
			return Broken
		}
		return Answered
	})
	return func() { _ = do(t.Context()) }, h.ResourceOf()
}
