package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func rpcOutcomeTests() []rpcTest {
	return []rpcTest{
		{"codes that blame the server are failures", nil, each(codesThatBlameTheServer)},
		{"errors without a code are failures", nil, each(errorsWithoutACode, AtServer)},
		{"a panic is a failure and is passed on", []Feature{Recovery}, each(rpcPanicIsPassedOn)},
		{"options that panic hold nothing", []Feature{Recovery}, each(rpcOptionsPanic)},
		{"refusals further down are ignored", nil, each(rpcRefusalsFurtherDown, AtServer)},
		{"faults injected further down are failures", nil, each(rpcFaultsFurtherDown)},
		{"refusals of an inner guard are ignored", []Feature{NestedGuards}, each(rpcRefusalsOfAnInnerGuard)},
		{"calls that their callers cancel are ignored", []Feature{Cancellation}, each(cancelledCallsAreIgnored)},
		{"calls that meet their deadline have failed", []Feature{Cancellation}, each(callsThatMeetTheirDeadline)},
		{"Failure decides what is a failure", nil, each(rpcFailureDecides)},
		{"calls last until their handlers return", nil, each(callsLastUntilHandlersReturn)},
		{"rules count calls by their end", nil, each(func(t *testing.T, c rpcCase) {
			callsAreCountedByTheirEnd(t, c.Timeout, c.counted)
		})},
	}
}

// outcome makes one call, and checks how rules see its end.
func (c rpcCase) outcome(t *testing.T, want Outcome, options RPCOptions, handle func(context.Context) error) error {
	t.Helper()
	p := new(Probe)
	err := c.start(t, RPCServer{Handle: handle, Recovered: c.ifRecovered()}, RPCGuard{p.NewEngine(t), options})(t.Context())
	p.requireOutcome(t, c.Timeout, want)
	return err
}

func (c rpcCase) ifRecovered() func(any) {
	if c.Lacks[Recovery] != "" {
		return nil
	}
	return func(any) {}
}

func codesThatBlameTheServer(t *testing.T, c rpcCase) {
	for _, code := range []rpc.Code{
		rpc.OK, rpc.Unknown, rpc.InvalidArgument, rpc.DeadlineExceeded, rpc.NotFound, rpc.PermissionDenied, rpc.ResourceExhausted, rpc.Aborted,
		rpc.Unimplemented, rpc.Internal, rpc.Unavailable, rpc.DataLoss, rpc.Unauthenticated,
	} {
		want := Succeeded
		if c.IsFailure(code) {
			want = Failed
		}
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			err := c.outcome(t, want, RPCOptions{}, func(context.Context) error {
				if code == rpc.OK {
					return nil
				}
				return c.Error(code, 0)
			})
			assert.Equal(t, c.received(code), c.answer(err).Code)
		})
	}
}

func errorsWithoutACode(t *testing.T, c rpcCase) {
	require.Error(t, c.outcome(t, Failed, RPCOptions{}, func(context.Context) error { return errLost }))
}

func rpcPanicIsPassedOn(t *testing.T, c rpcCase) {
	p := new(Probe)
	recovered := make(chan any, 1)
	call := c.start(t, RPCServer{
		Handle:    func(context.Context) error { panic("boom") },
		Recovered: func(value any) { recovered <- value },
	}, RPCGuard{Engine: p.NewEngine(t)})
	assert.Equal(t, rpc.Internal, c.answer(call(t.Context())).Code)
	select {
	case value := <-recovered:
		assert.Equal(t, "boom", fmt.Sprint(value))
	default:
		t.Error("nobody has recovered the panic: the guard must pass it on")
	}
	p.requireOutcome(t, c.Timeout, Failed)
}

func rpcRefusalsFurtherDown(t *testing.T, c rpcCase) {
	for _, test := range []struct {
		reason rule.Reason
		code   rpc.Code
	}{
		{rule.RateLimited, rpc.ResourceExhausted},
		{rule.Overloaded, rpc.Unavailable},
		{rule.Unavailable, rpc.Unavailable},
		{rule.Denied, rpc.PermissionDenied},
	} {
		refused := fmt.Errorf("query: %w", &core.BlockError{Resource: "db", Kind: "isolation", Rule: "pool", Reason: test.reason})
		err := c.outcome(t, Ignored, RPCOptions{}, func(context.Context) error { return c.Refuse(refused) })
		assert.Equal(t, test.code, c.answer(err).Code, test.reason)
	}
	require.Error(t, c.outcome(t, Ignored, RPCOptions{}, func(context.Context) error { return refusal() }), "without a code")
}

func rpcFaultsFurtherDown(t *testing.T, c rpcCase) {
	faulty := inject(t, "pay", fault.Abort{GRPC: "UNAVAILABLE"})
	err := c.outcome(t, Failed, RPCOptions{}, func(ctx context.Context) error {
		_, err := faulty.Entry(ctx, "pay")
		return c.Refuse(err)
	})
	assert.Equal(t, rpc.Unavailable, c.answer(err).Code)
}

func rpcRefusalsOfAnInnerGuard(t *testing.T, c rpcCase) {
	outer, inner := new(Probe), &Probe{Reason: rule.Unavailable, RefuseAfter: time.Second}
	call := c.start(t, RPCServer{Handle: succeed}, RPCGuard{Engine: outer.NewEngine(t)}, RPCGuard{Engine: inner.NewEngine(t)})
	assert.Equal(t, rpc.Unavailable, c.answer(call(t.Context())).Code)
	outer.requireOutcome(t, c.Timeout, Ignored)
}

func cancelledCallsAreIgnored(t *testing.T, c rpcCase) {
	ends := map[string]func(context.Context) error{
		"its context's error": func(ctx context.Context) error { return ctx.Err() },
		"success":             succeed,
		"failure":             func(context.Context) error { return c.Error(rpc.Internal, 0) },
	}
	if c.Lacks[Recovery] == "" {
		ends["panic"] = func(context.Context) error { panic("boom") }
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			p := new(Probe)
			here := make(chan struct{})
			call := c.start(t, RPCServer{Handle: func(ctx context.Context) error {
				close(here)
				hold(t, ctx.Done())
				return end(ctx)
			}, Recovered: c.ifRecovered()}, RPCGuard{Engine: p.NewEngine(t)})
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			go func() {
				hold(t, here)
				leave()
			}()
			assert.Equal(t, rpc.Canceled, c.answer(call(ctx)).Code)
			p.requireOutcome(t, c.Timeout, Ignored)
		})
	}
}

// callsThatMeetTheirDeadline gives a call more time if the machine is too busy for it to arrive, or for its server to
// distinguish a client that cancels it at its deadline from one that does so before.
func callsThatMeetTheirDeadline(t *testing.T, c rpcCase) {
	if c.at == AtServer {
		missing(c.Lacks).need(t, Deadlines)
	}
	const most = time.Second
	for within := 30 * time.Millisecond; ; within *= 2 {
		p := new(Probe)
		var arrived atomic.Bool
		call := c.serve(t, p.NewEngine(t), RPCOptions{}, func(ctx context.Context) error {
			arrived.Store(true)
			hold(t, ctx.Done())
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), within)
		err := call(ctx)
		cancel()
		if !arrived.Load() && within < c.Timeout {
			continue
		}
		assert.Equal(t, rpc.DeadlineExceeded, c.answer(err).Code)
		p.requireEnd(t, c.Timeout)
		if outcomes := p.Outcomes(); within > most || slices.Equal(outcomes, []Outcome{Failed}) {
			assert.Equal(t, []Outcome{Failed}, outcomes)
			return
		}
	}
}

func rpcFailureDecides(t *testing.T, c rpcCase) {
	options := RPCOptions{Failure: func(err error) bool {
		return errors.Is(err, core.ErrBlocked) || c.answer(err).Code == rpc.NotFound
	}}
	require.Error(t, c.outcome(t, Failed, options, func(context.Context) error { return c.Error(rpc.NotFound, 0) }))
	require.Error(t, c.outcome(t, Succeeded, options, func(context.Context) error { return c.Error(rpc.Internal, 0) }))
	require.NoError(t, c.outcome(t, Succeeded, options, succeed))
	if c.at == AtServer {
		require.Error(t, c.outcome(t, Failed, options, func(context.Context) error { return c.Refuse(refusal()) }))
	}
}

func callsLastUntilHandlersReturn(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{})
	here, end := make(chan struct{}), make(chan struct{})
	call := c.serve(t, engine, RPCOptions{}, func(context.Context) error {
		close(here)
		hold(t, end)
		return nil
	})
	done := make(chan error, 1)
	go func() { done <- call(t.Context()) }()
	receive(t, c.Timeout, here)
	assert.EqualValues(t, 1, totals(engine, c.resource()).InFlight)
	close(end)
	require.NoError(t, receive(t, c.Timeout, done))
	requireEnded(t, c.Timeout, engine, c.resource(), 1)
}

// counted serves calls whose end is counted.
func (c rpcCase) counted(t *testing.T, engine *core.Engine, calls *countedCalls) (call func(), resource string) {
	do := c.start(t, RPCServer{Handle: func(context.Context) error {
		if calls.serve() {
			return c.Error(rpc.Internal, 0)
		}
		return nil
	}}, RPCGuard{engine, RPCOptions{}})
	return func() { _ = do(t.Context()) }, c.resource()
}
