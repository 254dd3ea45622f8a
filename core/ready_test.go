package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
)

func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestEngineIsNotReadyWithoutTheListsThatItsRulesName(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Ready(ended(t)), "without rules it is ready")
	loadAccess(t, e,
		access.Rule{Name: "a", Match: "*", List: "scrapers"}, access.Rule{Name: "b", Resource: "r", List: "scrapers"},
		access.Rule{Name: "c", Resource: "r", List: "tried", Shadow: true})
	err := e.Ready(ended(t))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `list "scrapers", which access "a", access "b" names, is not there`)
	assert.NotContains(t, err.Error(), "tried", "a shadow refuses nobody")
	missing := e.Status().MissingLists
	require.Len(t, missing, 2)
	assert.Equal(t, "tried", missing[1].Name)

	ready := make(chan error, 1)
	go func() { ready <- e.Ready(t.Context()) }()
	setList(t, e, "scrapers", "10.0.0.0/8")
	require.NoError(t, <-ready)
	assert.Empty(t, e.Status().AwaitedLists)
}

func TestEngineIsReadyWhenTheRuleThatNamesAListGoes(t *testing.T) {
	e, _ := newEngine(t)
	loadAccess(t, e, access.Rule{Match: "*", List: "scrapers"})
	require.Error(t, e.Ready(ended(t)))
	ready := make(chan error, 1)
	go func() { ready <- e.Ready(t.Context()) }()
	loadAccess(t, e)
	require.NoError(t, <-ready)
}

// A rule that is pushed before its list, or a list that goes, must not take all instances of
// a service out of it at once.
func TestEngineThatWasReadyStaysSo(t *testing.T) {
	e, _ := newEngine(t)
	loadAccess(t, e, access.Rule{Match: "*", List: "scrapers"})
	setList(t, e, "scrapers", "10.0.0.0/8")
	require.NoError(t, e.Ready(ended(t)))
	e.Lists().Set("scrapers", nil)
	require.NoError(t, e.Ready(ended(t)))
	assert.Len(t, e.Status().MissingLists, 1, "the status tells")

	source := newMemory("memory")
	require.NoError(t, e.Follow(t.Context(), source))
	require.Error(t, e.Ready(ended(t)))
	source.put(complete())
	require.ErrorContains(t, e.Ready(ended(t)), "scrapers", "it begins anew with another source")
}

func TestEngineHoldsBackListsAsItDoesRules(t *testing.T) {
	e := core.New(core.Config{MaxRemoval: 0.5, Logger: quiet})
	t.Cleanup(e.Close)
	from := list.Provider{Source: "file:/lists", Document: "l.txt"}
	put := func(entries ...string) {
		var b list.Builder
		for _, entry := range entries {
			require.NoError(t, b.Add(entry))
		}
		l, err := b.Build(t.Context())
		require.NoError(t, err)
		e.Lists().Put("l", from, list.Version{List: l})
	}
	put("10.0.0.0/8", "192.0.2.1")
	put()
	assert.Equal(t, 2, e.Lists().Get("l").Len())
	require.ErrorContains(t, e.Confirm("file:/others"), "not followed")
	require.NoError(t, e.Confirm("file:/lists"))
	assert.Zero(t, e.Lists().Get("l").Len())
	require.Error(t, e.Confirm("file:/lists"))
}

// The backend of the fleet counts for readiness if the program says so and rules need it.
func TestEngineThatAwaitsTheFleetIsReadyWhenTheBackendHasAnswered(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, Fleet: fleet.Config{Manual: true, AwaitBackend: true}})
	defer e.Close()
	require.NoError(t, e.Ready(t.Context()), "no rule is for the fleet")
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{quota(5, fleet.ModeLease)}}))
	assert.ErrorContains(t, e.Ready(ended(t)), "the backend of the fleet has not answered yet")
	assert.True(t, e.Status().AwaitsFleet)

	answer := func(err error) {
		for _, batch := range sharing.Of(e.Fleet()).Step(c.Now()) {
			if err == nil {
				err = batch.Send(t.Context(), fleetmemory.New(c))
			}
			if err != nil {
				sharing.Of(e.Fleet()).Fail(c.Now(), batch, err)
			} else {
				sharing.Of(e.Fleet()).Deliver(c.Now(), batch)
			}
		}
	}
	answer(fleet.ErrUnavailable)
	assert.True(t, e.Status().AwaitsFleet, "it has failed")
	for range 20 {
		c.Advance(100 * time.Millisecond)
		answer(nil)
	}
	require.False(t, e.Status().AwaitsFleet)
	require.NoError(t, e.Ready(t.Context()))
	c.Advance(time.Second)
	answer(fleet.ErrUnavailable)
	assert.False(t, e.Status().AwaitsFleet, "it was ready")
}

func TestEngineDoesNotAwaitTheFleetUnlessItIsToldTo(t *testing.T) {
	t.Parallel()
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, Fleet: fleet.Config{Manual: true}})
	defer e.Close()
	require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{quota(5, fleet.ModeLease)}}))
	require.NoError(t, e.Ready(t.Context()))
}
