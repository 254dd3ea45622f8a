package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

type callName struct{}

// observed is what an observer receives of one call.
type observed struct {
	call     any // of the context
	err      error
	duration time.Duration
}

func TestObserverReceivesTheContextOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused, waited []observed
		engine := core.New(core.Config{Logger: quiet, Observer: core.Observer{
			Refused: func(ctx context.Context, err *core.BlockError) {
				refused = append(refused, observed{ctx.Value(callName{}), err, 0})
			},
			Waited: func(ctx context.Context, w core.Wait) {
				assert.Equal(t, "slow", w.Resource)
				waited = append(waited, observed{ctx.Value(callName{}), w.Err, w.Duration})
			},
		}})
		defer engine.Close()
		require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
			{Name: "none", Resource: "none", Limit: 0},
			throttle("slow", 1, 1500*time.Millisecond),
		}}))
		enter := func(name, resource string) error {
			guard, err := engine.Entry(context.WithValue(t.Context(), callName{}, name), resource)
			guard.Exit()
			return err
		}

		require.ErrorIs(t, enter("a", "none"), core.ErrBlocked)
		require.NoError(t, enter("at once", "slow"))
		assert.Empty(t, waited, "calls that do not wait are not reported")
		require.NoError(t, enter("b", "slow"))
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), callName{}, "c"))
		time.AfterFunc(400*time.Millisecond, func() { cancel(errors.New("gone")) })
		_, err := engine.Entry(ctx, "slow")
		require.ErrorIs(t, err, context.Canceled)

		require.Len(t, refused, 1)
		assert.Equal(t, "a", refused[0].call)
		assert.ErrorIs(t, refused[0].err, core.ErrBlocked)
		assert.Equal(t, []observed{{"b", nil, time.Second}, {"c", context.Canceled, 400 * time.Millisecond}}, waited)
	})
}

// A nil context is one that never ends, to the observer too.
func TestObserverNeverReceivesANilContext(t *testing.T) {
	called := false
	engine := core.New(core.Config{Logger: quiet, Observer: core.Observer{
		Refused: func(ctx context.Context, _ *core.BlockError) { called = ctx != nil },
	}})
	defer engine.Close()
	load(t, engine, flow.Rule{Name: "none", Resource: "none", Limit: 0})
	var none context.Context
	_, err := engine.Entry(none, "none")
	require.ErrorIs(t, err, core.ErrBlocked)
	assert.True(t, called)
}

// What a call that waited learns of a rule that it did not come to before is that it is refused.
func TestObserverReceivesTheRefusalAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []core.Wait
		engine := core.New(core.Config{Logger: quiet, Observer: core.Observer{
			Waited: func(_ context.Context, w core.Wait) { waits = append(waits, w) },
		}})
		defer engine.Close()
		load(t, engine, throttle("slow", 1, time.Minute))
		guard, err := engine.Entry(t.Context(), "slow")
		require.NoError(t, err)
		guard.Exit()
		time.AfterFunc(300*time.Millisecond, func() {
			assert.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Name: "none", Resource: "slow", Limit: 0}}}))
		})
		_, err = engine.Entry(t.Context(), "slow")
		require.ErrorIs(t, err, core.ErrBlocked)
		require.Len(t, waits, 1)
		assert.Equal(t, err, waits[0].Err)
	})
}
