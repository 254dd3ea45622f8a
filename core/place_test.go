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
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// placeEngine is one instance of a fleet that shares the only place of a resource, stepped by hand.
func placeEngine(t *testing.T, c *clock.Virtual, store *counts.Store, name string) (engine *core.Engine, step func()) {
	t.Helper()
	engine = core.New(core.Config{Clock: c, Fleet: fleet.Config{Backend: store, Instance: name, Manual: true}})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Isolation: []isolation.Rule{{
		Resource: "r", Limit: 1, Scope: rule.ScopeFleet, MaxWait: time.Second,
	}, {Resource: "local", Limit: 1}}}))
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

// Who gets the only place after an instance that sleeps has a higher number, and the sleeper keeps its
// own when it wakes up.
func TestTheNextHolderOfAPlaceHasAHigherNumber(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := counts.New(c)
	one, stepOne := placeEngine(t, c, store, "one")
	two, stepTwo := placeEngine(t, c, store, "two")
	stepOne()
	c.Advance(time.Millisecond)
	sleeper, err := one.Entry(t.Context(), "r")
	require.NoError(t, err)
	first, ok := sleeper.Place()
	require.True(t, ok)
	assert.Positive(t, first)

	for range 20 { // of the second one alone
		c.Advance(100 * time.Millisecond)
		stepTwo()
	}
	c.Advance(time.Millisecond)
	next, err := two.Entry(t.Context(), "r")
	require.NoError(t, err)
	second, ok := next.Place()
	require.True(t, ok)
	assert.Greater(t, second, first)
	var within core.CallContext
	within.Begin(t.Context(), &next)
	found, ok := core.GuardFrom(&within).Place()
	assert.True(t, ok)
	assert.Equal(t, second, found)

	stepOne()
	_, err = one.Entry(t.Context(), "r", core.NoWait())
	require.ErrorIs(t, err, core.ErrBlocked, "the sleeper begins no other call")
	again, _ := sleeper.Place()
	assert.Equal(t, first, again)
	sleeper.Exit()
	within.End()
	within.Guard().Exit()

	local, err := one.Entry(t.Context(), "local")
	require.NoError(t, err)
	_, ok = local.Place()
	assert.False(t, ok)
	local.Exit()
	_, ok = new(core.Guard).Place()
	assert.False(t, ok)
	_, ok = core.GuardFrom(t.Context()).Place()
	assert.False(t, ok, "within no call")
}
