package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// codedError is an error of a framework.
type codedError struct {
	code  rpc.Code
	text  string
	cause error
}

func (e *codedError) Error() string { return e.text }
func (e *codedError) Unwrap() error { return e.cause }

func codeOf(err error) rpc.Code {
	var coded *codedError
	switch {
	case err == nil:
		return rpc.OK
	case errors.As(err, &coded):
		return coded.code
	}
	return rpc.EntryCode(err)
}

func newGate(engine *core.Engine, inbound bool) *rpc.Gate {
	return &rpc.Gate{
		Engine: engine, Inbound: inbound, CodeOf: codeOf,
		NewError: func(code rpc.Code, message string, cause error) error { return &codedError{code, message, cause} },
		Failure: func(err error) bool {
			code := codeOf(err)
			return code == rpc.DeadlineExceeded || code.BlamesServer() && !core.IsRefusal(err)
		},
	}
}

func TestEnterReturnsTheRefusalOfACall(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "closed", Resource: "a", Limit: 0}}})
	gate := newGate(engine, true)
	var guard core.Guard
	block, err := gate.Enter(t.Context(), &guard, "a", nil)
	require.Equal(t, error(block), err)
	assert.Equal(t, "closed", block.Rule)
	block, err = gate.Enter(t.Context(), &guard, "b", []core.Option{core.Tokens(0)})
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.Nil(t, block)
	block, err = gate.Enter(t.Context(), &guard, "b", nil)
	require.NoError(t, err)
	assert.Nil(t, block)
	guard.Exit()
	adaptertest.RequireEnded(t, engine, "b", 1)
}

func TestCallTellsRulesHowItEnds(t *testing.T) {
	const (
		before = 10 * time.Millisecond // the end of the call; a third of the time is the slack
		after  = time.Minute
	)
	refused := &codedError{rpc.Unavailable, "down", &core.BlockError{Resource: "db"}}
	for name, row := range map[string]struct {
		deadline, cancelled time.Duration // of the caller; 0 is never
		err                 error
		inbound, outbound   adaptertest.Outcome
	}{
		"reply":                           {0, 0, nil, adaptertest.Succeeded, adaptertest.Succeeded},
		"error of the caller":             {0, 0, &codedError{code: rpc.NotFound}, adaptertest.Succeeded, adaptertest.Succeeded},
		"error of the server":             {0, 0, &codedError{code: rpc.Internal}, adaptertest.Failed, adaptertest.Failed},
		"refused further down":            {0, 0, refused, adaptertest.Ignored, adaptertest.Ignored},
		"reply to who has left":           {0, before, nil, adaptertest.Ignored, adaptertest.Succeeded},
		"error of who has left":           {0, before, &codedError{code: rpc.Internal}, adaptertest.Ignored, adaptertest.Ignored},
		"reply after the deadline":        {before, 0, nil, adaptertest.Failed, adaptertest.Succeeded},
		"error after the deadline":        {before, 0, &codedError{code: rpc.NotFound}, adaptertest.Failed, adaptertest.Failed},
		"refused and after the deadline":  {before, 0, refused, adaptertest.Failed, adaptertest.Failed},
		"panic":                           {0, 0, rpc.ErrPanicked, adaptertest.Failed, adaptertest.Failed},
		"panic after the caller has left": {0, before, rpc.ErrPanicked, adaptertest.Ignored, adaptertest.Ignored},
	} {
		for inbound, want := range map[bool]adaptertest.Outcome{true: row.inbound, false: row.outbound} {
			t.Run(fmt.Sprintf("%s, inbound %v", name, inbound), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					panics := errors.Is(row.err, rpc.ErrPanicked)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if row.deadline > 0 {
						ctx, cancel = context.WithTimeout(ctx, row.deadline)
						defer cancel()
					}
					if row.cancelled > 0 {
						time.AfterFunc(row.cancelled, cancel)
					}
					p := new(adaptertest.Probe)
					gate := newGate(p.NewEngine(t), inbound)
					call := func() {
						var guard core.Guard
						_, err := gate.Enter(ctx, &guard, "a", nil)
						require.NoError(t, err)
						got := gate.Call(rpc.CallerOf(ctx), &guard, func() error {
							time.Sleep(after)
							if panics {
								panic("boom")
							}
							return row.err
						})
						assert.Equal(t, row.err, got)
					}
					if panics {
						assert.PanicsWithValue(t, "boom", call)
					} else {
						call()
					}
					assert.Equal(t, []adaptertest.Outcome{want}, p.Outcomes())
				})
			})
		}
	}
}

func TestEndedSaysWhatACallTellsOfItsTarget(t *testing.T) {
	broken := &codedError{code: rpc.Internal}
	gate := newGate(nil, false)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	for name, row := range map[string]struct {
		ctx   context.Context
		err   error
		known bool
		code  rpc.Code
	}{
		"reply":              {t.Context(), nil, true, rpc.OK},
		"error":              {t.Context(), broken, true, rpc.Internal},
		"reply in time":      {late, nil, true, rpc.OK},
		"after the deadline": {late, broken, true, rpc.DeadlineExceeded},
		"cancelled":          {cancelled, broken, false, rpc.OK},
		"refused further in": {t.Context(), &core.BlockError{}, false, rpc.OK},
		"injected":           {t.Context(), &core.BlockError{Reason: rule.Injected}, false, rpc.OK},
		"panicked":           {t.Context(), rpc.ErrPanicked, false, rpc.OK},
	} {
		known, err := gate.Ended(rpc.CallerOf(row.ctx), row.err)
		assert.Equal(t, row.known, known, name)
		assert.Equal(t, row.code, codeOf(err), name)
		if known && row.err != nil {
			assert.ErrorIs(t, err, row.err, name)
		}
	}
}

func TestEntryErrors(t *testing.T) {
	for err, want := range map[error]rpc.Code{
		core.ErrClosed: rpc.Unavailable, core.ErrInvalid: rpc.Internal, core.ErrBlocked: rpc.ResourceExhausted,
		context.Canceled: rpc.Canceled, context.DeadlineExceeded: rpc.DeadlineExceeded,
	} {
		wrapped := fmt.Errorf("call: %w", err)
		assert.Equal(t, want, rpc.EntryCode(wrapped))
		assert.True(t, rpc.IsEntryError(wrapped))
	}
	assert.True(t, rpc.IsEntryError(&core.BlockError{}))
	assert.False(t, rpc.IsEntryError(errors.New("other")))
	assert.Equal(t, rpc.Unknown, rpc.EntryCode(errors.New("other")))
	block := new(core.BlockError)
	assert.Equal(t, block, rpc.RefusalIn(fmt.Errorf("call: %w", block)))
	assert.Nil(t, rpc.RefusalIn(errors.New("other")))
}
