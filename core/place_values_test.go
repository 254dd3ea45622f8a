package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	counts "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/rules"
)

// valuePlaceEngine is one instance of a fleet in which each value has one call under way, stepped by
// hand.
func valuePlaceEngine(t *testing.T, c *clock.Virtual, store *counts.Store, name string) (engine *core.Engine, step func()) {
	t.Helper()
	engine = core.New(core.Config{Clock: c, Logger: quiet, Fleet: fleet.Config{Backend: store, Instance: name, Manual: true}})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("", []byte(`hotParam: [{name: exports, resource: r, param: user, concurrency: 1, scope: fleet}]
flow: [{resource: r, limit: 1000}]`))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	engine.Resource("r")
	member := sharing.Of(engine.Fleet())
	return engine, func() {
		for range 3 {
			for _, batch := range member.Step(c.Now()) {
				require.NoError(t, batch.Send(t.Context(), store))
				member.Deliver(c.Now(), batch)
			}
		}
	}
}

// enterValue enters a call of a user that asks the fleet.
func enterValue(t *testing.T, engine *core.Engine, step func(), user string) (guard *core.Guard, err error) {
	t.Helper()
	guard = new(core.Guard)
	done := make(chan error)
	go func() {
		var err error
		*guard, err = engine.Entry(t.Context(), "r", core.String("user", user))
		done <- err
	}()
	for {
		select {
		case err := <-done:
			return guard, err
		default:
			step()
		}
	}
}

// Who gets the place of a value after an instance that sleeps has a higher number, and the sleeper's call
// keeps its own, also when the instance gets the place again meanwhile.
func TestTheNextHolderOfAValuesPlaceHasAHigherNumber(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := counts.New(c)
	one, stepOne := valuePlaceEngine(t, c, store, "one")
	two, stepTwo := valuePlaceEngine(t, c, store, "two")
	stepOne()
	stepTwo()
	sleeper, err := enterValue(t, one, stepOne, "a")
	require.NoError(t, err)
	first, ok := sleeper.Place()
	require.True(t, ok)
	assert.Positive(t, first)

	_, err = enterValue(t, two, stepTwo, "a")
	require.ErrorIs(t, err, core.ErrBlocked, "the place is taken")
	for range 20 { // of the second one alone
		c.Advance(100 * time.Millisecond)
		stepTwo()
	}
	next, err := enterValue(t, two, stepTwo, "a")
	require.NoError(t, err)
	second, ok := next.Place()
	require.True(t, ok)
	assert.Greater(t, second, first)

	stepOne()
	_, err = enterValue(t, one, stepOne, "a")
	require.ErrorIs(t, err, core.ErrBlocked, "the sleeper begins no other call")
	next.Exit()
	again, ok := sleeper.Place()
	assert.True(t, ok)
	assert.Equal(t, first, again)
	sleeper.Exit()
	_, ok = sleeper.Place()
	assert.False(t, ok, "the call has ended")

	for range 5 {
		c.Advance(10 * time.Millisecond)
		stepOne()
		stepTwo()
	}
	third, err := enterValue(t, one, stepOne, "a")
	require.NoError(t, err)
	number, ok := third.Place()
	assert.True(t, ok)
	assert.Greater(t, number, second)
	third.Exit()

	without, err := one.Entry(t.Context(), "r")
	require.NoError(t, err)
	_, ok = without.Place()
	assert.False(t, ok, "a call without the value has no place")
	without.Exit()
}
