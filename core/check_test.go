package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// probe is a check that decides as it is told and remembers what it saw.
type probe struct {
	name     string
	enter    func() core.Verdict
	calls    []core.CallInfo
	outcomes []core.Outcome
}

func (p *probe) Name() string { return p.name }

func (p *probe) Enter(_ context.Context, call core.CallInfo, _ clock.Instant) core.Verdict {
	p.calls = append(p.calls, call)
	return p.enter()
}

func (p *probe) Exit(_ core.CallInfo, outcome core.Outcome) { p.outcomes = append(p.outcomes, outcome) }

func admitting(name string) *probe { return &probe{name: name, enter: core.Admit} }

func newChecked(t *testing.T, rule flow.Rule, checks ...core.Check) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Checks: checks})
	t.Cleanup(e.Close)
	load(t, e, rule)
	return e, c
}

func TestAChecksViewOfACall(t *testing.T) {
	p := admitting("probe")
	e, c := newChecked(t, flow.Rule{Resource: "r", Limit: 10}, p)
	args := []any{"user", 7, uint8(3), 1.5, true}
	guard, err := e.Entry(t.Context(), "r",
		core.Tokens(2), core.Origin("mobile"), core.Inbound(), core.Args(args...))
	require.NoError(t, err)
	args[0] = "overwritten"
	c.Advance(time.Millisecond)
	broken := errors.New("broken")
	guard.Fail(broken)
	guard.Exit()
	guard.Exit()

	assert.Equal(t, []core.CallInfo{{
		Resource: "r", Tokens: 2, Origin: "mobile", Inbound: true,
		Args: []any{"user", int64(7), uint64(3), 1.5, true},
	}}, p.calls)
	assert.Equal(t, []core.Outcome{{Passed: true, Took: time.Millisecond, Err: broken}}, p.outcomes)

	_, err = e.Entry(t.Context(), "r", core.Args(struct{}{}))
	require.ErrorIs(t, err, core.ErrInvalid)
	assert.Equal(t, 8, enter(e, "r", 20), "the call that made no sense took nothing")
}

func TestARefusalByACheckGivesBackWhatTheCallTook(t *testing.T) {
	first, closed := admitting("first"), &probe{name: "closed", enter: func() core.Verdict { return core.Refuse(time.Hour) }}
	e, _ := newChecked(t, flow.Rule{Resource: "r", Limit: 3}, first, closed)
	for range 10 {
		_, err := e.Entry(t.Context(), "r")
		var blocked *core.BlockError
		require.ErrorAs(t, err, &blocked)
		require.Equal(t, core.BlockError{
			Resource: "r", Kind: core.KindCheck, Rule: "closed", RetryAfter: time.Hour,
		}, *blocked)
	}
	assert.Len(t, first.outcomes, 10, "who let a call through hears of its end")
	assert.Empty(t, closed.outcomes)
	assert.Contains(t, e.Resource("r").Snapshot().Refusals,
		core.Refusals{Kind: core.KindCheck, Rule: "closed", Count: 10})

	closed.enter = core.Admit
	assert.Equal(t, 3, enter(e, "r", 10))
	assert.Len(t, closed.calls, 13, "rules are asked before checks")
}

func TestAPanicInACheckTakesNothing(t *testing.T) {
	first := admitting("first")
	broken := &probe{name: "broken", enter: func() core.Verdict { panic("oops") }}
	e, _ := newChecked(t, flow.Rule{Resource: "r", Limit: 3}, first, broken)
	for range 10 {
		require.PanicsWithValue(t, "oops", func() { _, _ = e.Entry(t.Context(), "r") })
	}
	s := e.Resource("r").Snapshot()
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Passed)
	assert.Len(t, first.outcomes, 10)
	broken.enter = core.Admit
	assert.Equal(t, 3, enter(e, "r", 10))
}

// The window is held against the moment at which a delayed call passes.
func TestADelayByACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &probe{name: "slow", enter: func() core.Verdict { return core.Delay(700 * time.Millisecond) }}
		e := core.New(core.Config{Logger: quiet, Checks: []core.Check{slow}})
		defer e.Close()
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Resource: "r", Limit: 1}}}))

		start := time.Now()
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		guard.Exit()
		assert.Equal(t, 700*time.Millisecond, time.Since(start))
		assert.Len(t, slow.calls, 1, "a check is asked once")

		time.Sleep(200 * time.Millisecond) // the call came 900 ms ago and passed 200 ms ago
		_, err = e.Entry(t.Context(), "r")
		require.ErrorIs(t, err, core.ErrBlocked)
		s := e.Resource("r").Snapshot()
		assert.EqualValues(t, 1, s.Waited)
		assert.Zero(t, s.ResponseTime)

		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = e.Entry(ctx, "r")
		require.ErrorIs(t, err, core.ErrBlocked, "at once: the wait would be too long")
		assert.Equal(t, 1, enter(e, "r", 1), "it took nothing")
	})
}
