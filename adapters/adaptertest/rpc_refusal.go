package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func rpcRefusalTests() []rpcTest {
	return []rpcTest{
		{"names are those of methods", nil, each(namesAreMethods)},
		{"Resource names calls", nil, each(resourceNamesCalls)},
		{"calls without a resource are not guarded", nil, each(callsWithoutAResource)},
		{"no engine is the default engine", nil, each(rpcDefaultEngine)},
		{"refusals are answered by their reason", nil, each(rpcRefusalsByReason)},
		{"refusals name the rule and say when to retry", nil, each(rpcRefusalsNameTheRule)},
		{"refusals name no rule without ShowRules", nil, each(refusalsNameNoRule)},
		{"refusals of a client can be told from those of its server", nil, each(refusalsOfAClient, AtClient)},
		{"injected faults are answered as their rules say", nil, each(rpcInjectedFaults)},
		{"Blocked replaces the error", nil, each(blockedReplacesTheError)},
		{"EntryError replaces the error", nil, each(entryErrorReplacesTheError)},
		{"a closed engine is answered with Unavailable", nil, each(rpcClosedEngine)},
		{"refused calls are not retried", []Feature{RetryPolicies}, each(refusedCallsAreNotRetried, AtServer)},
	}
}

func namesAreMethods(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{})
	require.NoError(t, c.serve(t, engine, RPCOptions{}, succeed)(t.Context()))
	assert.Equal(t, []string{c.resource()}, Called(engine))
}

func resourceNamesCalls(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{})
	call := c.serve(t, engine, RPCOptions{Resource: func(r RPCCall) string { return "mine of " + r.Method() }}, succeed)
	require.NoError(t, call(t.Context()))
	assert.Equal(t, []string{"mine of " + c.Method(c.shape)}, Called(engine))
}

func callsWithoutAResource(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 0}}})
	call := c.serve(t, engine, RPCOptions{Resource: func(RPCCall) string { return "" }}, succeed)
	require.NoError(t, call(t.Context()))
	assert.Empty(t, Called(engine))
}

func rpcDefaultEngine(t *testing.T, c rpcCase) {
	before := totals(penstock.Default(), c.resource()).Passed
	require.NoError(t, c.serve(t, nil, RPCOptions{}, succeed)(t.Context()))
	assert.Equal(t, before+1, totals(penstock.Default(), c.resource()).Passed)
}

// refuse makes a call that must not be made, and returns its error.
func (c rpcCase) refuse(t *testing.T, engine *core.Engine, options RPCOptions) error {
	t.Helper()
	var arrived, handled atomic.Int64
	err := c.start(t, RPCServer{
		Handle:  func(context.Context) error { handled.Add(1); return nil },
		Arrived: func() { arrived.Add(1) },
	}, RPCGuard{engine, options})(t.Context())
	require.Error(t, err)
	assert.Zero(t, handled.Load(), "the call has reached its handler")
	if c.at == AtClient {
		assert.Zero(t, arrived.Load(), "the call was sent")
	}
	return err
}

func rpcRefusalsByReason(t *testing.T, c rpcCase) {
	for _, test := range []struct {
		reason rule.Reason
		code   rpc.Code
		says   bool // when to retry
	}{
		{rule.RateLimited, rpc.ResourceExhausted, true},
		{rule.Overloaded, rpc.Unavailable, true},
		{rule.Unavailable, rpc.Unavailable, true},
		{rule.Denied, rpc.PermissionDenied, false},
	} {
		p := &Probe{Reason: test.reason, RefuseAfter: 1500 * time.Millisecond}
		answer := c.answer(c.refuse(t, p.NewEngine(t), RPCOptions{}))
		assert.Equal(t, test.code, answer.Code, test.reason)
		if c.Lacks[RetryDelays] == "" && test.says {
			assert.Equal(t, p.RefuseAfter, answer.RetryAfter, test.reason)
		} else {
			assert.Zero(t, answer.RetryAfter, test.reason)
		}
	}
}

// spend makes the call that a limit of one lets pass.
func spend(t *testing.T, engine *core.Engine, resource string) {
	t.Helper()
	guard, err := engine.Entry(t.Context(), resource)
	require.NoError(t, err)
	guard.Exit()
}

func rpcRefusalsNameTheRule(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "reads", Resource: c.resource(), Limit: 1, Window: time.Minute}}})
	spend(t, engine, c.resource())
	answer := c.answer(c.refuse(t, engine, RPCOptions{ShowRules: true}))
	assert.Equal(t, rpc.ResourceExhausted, answer.Code)
	assert.Contains(t, answer.Text, "reads")
	if c.Lacks[RetryDelays] == "" {
		assert.Positive(t, answer.RetryAfter)
		assert.LessOrEqual(t, answer.RetryAfter, time.Minute)
	}
	engine, _ = NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "closed", Resource: c.resource(), Limit: 0}}})
	assert.Zero(t, c.answer(c.refuse(t, engine, RPCOptions{})).RetryAfter, "such a call never passes")
	counted := totals(engine, c.resource())
	assert.EqualValues(t, 1, counted.Blocked)
	assert.Zero(t, counted.Passed+counted.Failed)
}

func refusalsNameNoRule(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "secret", Resource: c.resource(), Limit: 1, Window: time.Minute}}})
	spend(t, engine, c.resource())
	answer := c.answer(c.refuse(t, engine, RPCOptions{}))
	assert.Equal(t, rpc.ResourceExhausted, answer.Code)
	assert.NotContains(t, answer.Text, "secret")
	assert.NotContains(t, answer.Text, c.resource())
	if c.Lacks[RetryDelays] == "" {
		assert.Positive(t, answer.RetryAfter)
	}
	assert.Contains(t, c.answer(c.refuse(t, engine, RPCOptions{ShowRules: true})).Text, "secret")
}

func refusalsOfAClient(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "closed", Resource: c.resource(), Limit: 0}}})
	err := c.refuse(t, engine, RPCOptions{})
	var block *core.BlockError
	require.ErrorAs(t, err, &block)
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.Equal(t, "closed", block.Rule)
	assert.Equal(t, c.resource(), block.Resource)
}

func rpcInjectedFaults(t *testing.T, c rpcCase) {
	for name, test := range map[string]struct {
		abort fault.Abort
		code  rpc.Code
	}{
		"with its code":  {fault.Abort{HTTP: 500, GRPC: "DATA_LOSS"}, rpc.DataLoss},
		"without a code": {fault.Abort{HTTP: 500}, rpc.Unavailable},
	} {
		answer := c.answer(c.refuse(t, inject(t, c.resource(), test.abort), RPCOptions{ShowRules: true}))
		want := test.code
		if c.Lacks[Codes] != "" {
			want = rpc.Internal // the status 500
		}
		assert.Equal(t, want, answer.Code, name)
		assert.Zero(t, answer.RetryAfter, name)
		assert.Contains(t, answer.Text, "broken", name)
	}
}

func blockedReplacesTheError(t *testing.T, c rpcCase) {
	set := rules.Set{Flow: []flow.Rule{{Name: "reads", Resource: c.resource(), Limit: 0}}}
	engine, _ := NewEngine(t, set)
	var seen string
	answer := c.answer(c.refuse(t, engine, RPCOptions{Blocked: func(_ RPCCall, block *core.BlockError) error {
		seen = block.Rule
		return c.Error(rpc.Aborted, 0)
	}}))
	assert.Equal(t, rpc.Aborted, answer.Code)
	assert.Equal(t, "reads", seen)
	engine, _ = NewEngine(t, set)
	answer = c.answer(c.refuse(t, engine, RPCOptions{Blocked: func(RPCCall, *core.BlockError) error { return nil }}))
	assert.Equal(t, rpc.ResourceExhausted, answer.Code, "a refused call never ends well")
}

func entryErrorReplacesTheError(t *testing.T, c rpcCase) {
	for name, test := range map[string]struct {
		tokens int
		closed bool
		err    error
		code   rpc.Code // by default
	}{
		"closed":           {1, true, core.ErrClosed, rpc.Unavailable},
		"too few tokens":   {0, false, core.ErrInvalid, rpc.Internal},
		"negative, closed": {-1, true, nil, 0},
	} {
		engine, _ := NewEngine(t, rules.Set{})
		if test.closed {
			engine.Close()
		}
		var seen error
		options := RPCOptions{
			Tokens: func(RPCCall) int { return test.tokens },
			EntryError: func(_ RPCCall, err error) error {
				seen = err
				return c.Error(rpc.Aborted, 0)
			},
		}
		assert.Equal(t, rpc.Aborted, c.answer(c.refuse(t, engine, options)).Code, name)
		if test.err == nil {
			require.Error(t, seen, name)
			continue
		}
		require.ErrorIs(t, seen, test.err, name)
		options.EntryError = func(RPCCall, error) error { return nil }
		assert.Equal(t, test.code, c.answer(c.refuse(t, engine, options)).Code, name+": it never ends well")
	}
}

func rpcClosedEngine(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{})
	call := c.serve(t, engine, RPCOptions{}, succeed)
	require.NoError(t, call(t.Context()))
	engine.Close()
	assert.Equal(t, rpc.Unavailable, c.answer(call(t.Context())).Code)
}

func refusedCallsAreNotRetried(t *testing.T, c rpcCase) {
	for name, options := range map[string]RPCOptions{
		"by default":         {},
		"answered otherwise": {Blocked: func(RPCCall, *core.BlockError) error { return c.Error(rpc.Unavailable, 0) }},
	} {
		engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Resource: c.resource(), Limit: 1, Window: time.Hour}}})
		var arrived atomic.Int64
		call := c.start(t, RPCServer{Handle: succeed, Arrived: func() { arrived.Add(1) }, Retries: true}, RPCGuard{engine, options})
		require.NoError(t, call(t.Context()), name)
		for range 5 {
			require.Error(t, call(t.Context()), name)
		}
		assert.EqualValues(t, 6, arrived.Load(), name)
	}
	var arrived atomic.Int64
	engine, _ := NewEngine(t, rules.Set{})
	call := c.start(t, RPCServer{
		Handle:  func(context.Context) error { return c.Refuse(refusal()) },
		Arrived: func() { arrived.Add(1) }, Retries: true,
	}, RPCGuard{engine, RPCOptions{}})
	require.Error(t, call(t.Context()))
	assert.EqualValues(t, 1, arrived.Load(), "the refusal of a call further down")
}

// describe prints a call with all that rules get to know of it.
func describe(call rule.Call) string { return fmt.Sprintf("%#v", call) }

var errLost = errors.New("lost")
