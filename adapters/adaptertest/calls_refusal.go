package adaptertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func callsRefusalTests() []callsTest {
	return []callsTest{
		{"calls have the name of their resource", nil, callsHaveTheName},
		{"Resource names calls", nil, callsResourceOption},
		{"calls without a resource are not guarded", nil, callsWithoutResource},
		{"no engine is the default engine", nil, callsDefaultEngine},
		{"refused calls are not sent", nil, refusedCallsAreNotSent},
		{"a closed engine refuses with its error", nil, callsClosedEngine},
		{"fewer tokens than one are an error", nil, callsTooFewTokens},
		{"rules get what the options say", nil, callsRulesGetTheOptions},
		{"rules get the priority of the context", nil, callsPriorityOfTheContext},
		{"a throttle refuses most calls of what rejects them", []Feature{Throttling}, callsThrottled},
		{"a throttle obeys the delay that the other end asks for", []Feature{Throttling, RetryDelays}, callsPaused},
		{"retries beyond the budget are not sent", []Feature{Throttling, RetryBudgets}, callsRetryBudget},
	}
}

func callsHaveTheName(t *testing.T, h *CallsHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	require.NoError(t, h.open(t, engine, CallsOptions{}, answered)(t.Context()))
	assert.Equal(t, []string{h.ResourceOf()}, Called(engine))
}

// namedContext is the key of a name in a context.
type namedContext struct{}

func nameOf(ctx context.Context) string {
	name, _ := ctx.Value(namedContext{}).(string)
	return name
}

func callsResourceOption(t *testing.T, h *CallsHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	call := h.open(t, engine, CallsOptions{Resource: func(ctx context.Context) string { return "mine of " + nameOf(ctx) }}, answered)
	require.NoError(t, call(context.WithValue(t.Context(), namedContext{}, "ann")))
	assert.Equal(t, []string{"mine of ann"}, Called(engine), "the option gets the context of the call")
}

func callsWithoutResource(t *testing.T, h *CallsHarness) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 0}}})
	require.NoError(t, h.open(t, engine, CallsOptions{Resource: func(context.Context) string { return "" }}, answered)(t.Context()))
	assert.Empty(t, Called(engine))
}

func callsDefaultEngine(t *testing.T, h *CallsHarness) {
	call := h.open(t, nil, CallsOptions{}, answered)
	before := totals(penstock.Default(), h.ResourceOf()).Passed
	require.NoError(t, call(t.Context()))
	assert.Equal(t, before+1, totals(penstock.Default(), h.ResourceOf()).Passed)
}

func refusedCallsAreNotSent(t *testing.T, h *CallsHarness) {
	for _, reason := range []rule.Reason{rule.RateLimited, rule.Overloaded, rule.Unavailable, rule.Denied} {
		p := &Probe{Reason: reason, RefuseAfter: time.Second}
		var arrived atomic.Int64
		call := h.open(t, p.NewEngine(t), CallsOptions{}, func() Reply {
			arrived.Add(1)
			return Answered
		})
		err := call(t.Context())
		require.ErrorIs(t, err, core.ErrBlocked, reason)
		var block *core.BlockError
		require.ErrorAs(t, err, &block, reason)
		assert.Equal(t, h.ResourceOf(), block.Resource, reason)
		assert.Equal(t, reason, block.Reason)
		if reason != rule.Denied {
			assert.Equal(t, time.Second, block.RetryAfter, reason)
		}
		assert.Zero(t, arrived.Load(), reason)
	}
}

func callsClosedEngine(t *testing.T, h *CallsHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	var arrived atomic.Int64
	call := h.open(t, engine, CallsOptions{}, func() Reply {
		arrived.Add(1)
		return Answered
	})
	require.NoError(t, call(t.Context()))
	engine.Close()
	require.ErrorIs(t, call(t.Context()), core.ErrClosed)
	assert.EqualValues(t, 1, arrived.Load())
}

func callsTooFewTokens(t *testing.T, h *CallsHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	call := h.open(t, engine, CallsOptions{Tokens: func(context.Context) int { return -1 }}, answered)
	require.ErrorIs(t, call(t.Context()), core.ErrInvalid)
}

func callsRulesGetTheOptions(t *testing.T, h *CallsHarness) {
	p := new(Probe)
	call := h.open(t, p.NewEngine(t), CallsOptions{
		Tokens: func(ctx context.Context) int { return len(nameOf(ctx)) },
		Attributes: func(ctx context.Context) []core.Option {
			return []core.Option{core.String("user", nameOf(ctx)), core.Int("size", 3), core.Priority(rule.PriorityHigh)}
		},
	}, answered)
	require.NoError(t, call(context.WithValue(t.Context(), namedContext{}, "ann")))
	p.requireOutcome(t, h.Timeout, Succeeded)
	want := rule.Call{Now: p.LastCall().Now, Tokens: 3, Attribute: rule.String("ann")}
	want.SetCaller(rule.PriorityHigh, false)
	assert.Equal(t, describe(want), describe(p.LastCall()), "a call that does not come from outside")

	p = new(Probe)
	require.NoError(t, h.open(t, p.NewEngine(t), CallsOptions{}, answered)(t.Context()))
	want = rule.Call{Now: p.LastCall().Now, Tokens: 1}
	want.SetCaller(rule.PriorityNormal, false)
	assert.Equal(t, describe(want), describe(p.LastCall()), "by default")
}

func callsPriorityOfTheContext(t *testing.T, h *CallsHarness) {
	p := new(Probe)
	call := h.open(t, p.NewEngine(t), CallsOptions{}, answered)
	for _, want := range []rule.Priority{rule.PriorityCritical, rule.PrioritySheddable} {
		require.NoError(t, call(core.ContextWithPriority(t.Context(), want)))
		assert.Equal(t, want, p.LastCall().Priority())
	}
}

func callsThrottled(t *testing.T, h *CallsHarness) {
	const calls, first, most = 200, 10, 60 // as many as a throttle looks at at least; it sends one in a hundred then
	throttle, _, _ := newThrottle(t)
	engine, _ := NewEngine(t, rules.Set{})
	var arrived atomic.Int64
	call := h.open(t, engine, CallsOptions{Throttle: throttle}, func() Reply {
		arrived.Add(1)
		return Rejected
	})
	throttled := int64(0)
	for range calls {
		if err := call(t.Context()); errors.Is(err, outgoing.ErrThrottled) {
			require.ErrorIs(t, err, core.ErrBlocked)
			throttled++
		}
	}
	assert.EqualValues(t, calls, arrived.Load()+throttled)
	assert.GreaterOrEqual(t, arrived.Load(), int64(first))
	assert.Less(t, arrived.Load(), int64(most))
	assert.EqualValues(t, arrived.Load(), requireEnded(t, h.Timeout, engine, h.ResourceOf(), int(arrived.Load())).Passed,
		"a call that is not sent is none of the resource")
	stats := throttle.Stats().Targets
	require.Len(t, stats, 1)
	assert.EqualValues(t, arrived.Load(), stats[0].Rejected)
}

func callsPaused(t *testing.T, h *CallsHarness) {
	throttle, budgets, virtual := newThrottle(t)
	engine, _ := NewEngine(t, rules.Set{})
	var arrived atomic.Int64
	call := h.open(t, engine, CallsOptions{Throttle: throttle, RetryBudgets: budgets}, func() Reply {
		if arrived.Add(1) == 1 {
			return Busy
		}
		return Answered
	})
	_ = call(t.Context()) // some clients return what the other end answers, without an error
	err := call(t.Context())
	require.ErrorIs(t, err, outgoing.ErrPaused)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.EqualValues(t, 1, arrived.Load())
	virtual.Advance(3 * time.Second)
	require.NoError(t, call(t.Context()))
	assert.EqualValues(t, 2, requireEnded(t, h.Timeout, engine, h.ResourceOf(), 2).Passed, "a call that is not sent is none of the resource")
}

func callsRetryBudget(t *testing.T, h *CallsHarness) {
	throttle, budgets, _ := newThrottle(t)
	engine, _ := NewEngine(t, rules.Set{})
	var arrived atomic.Int64
	call := h.open(t, engine, CallsOptions{Throttle: throttle, RetryBudgets: budgets}, func() Reply {
		arrived.Add(1)
		return Answered
	})
	ctx := outgoing.WithRetries(t.Context())
	for range 3 { // the call, and a burst of two retries
		require.NoError(t, call(ctx))
	}
	require.ErrorIs(t, call(ctx), outgoing.ErrRetryBudget)
	assert.EqualValues(t, 3, arrived.Load())
}
