package console_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/rules"
)

func TestForcedStatesHaveWhoWhyAndUntilWhen(t *testing.T) {
	engine := newEngine(t, `breaker: [{name: b, resource: pay, threshold: 0.5}]`)
	require.NoError(t, engine.Control(core.Scope{Kind: "breaker", Rule: "b"}, "open", core.Order{By: "alice", Reason: "it is down", For: time.Hour}))
	require.NoError(t, engine.Control(core.Scope{Kind: "breaker"}, "closed", core.Order{By: "bob", Reason: "a test"}))
	seen := watch(t, serve(t, console.Options{Engine: engine})+"/api/live?screen=history", `"forced":[`)
	assert.Regexp(t, `"kind":"breaker","rule":"b","state":"open","by":"alice","reason":"it is down","since":"[^"]+","until":"`, seen)
	assert.Regexp(t, `"kind":"breaker","state":"closed","by":"bob","reason":"a test","since":"[^"]+","instances":1`, seen)
}

func TestLoadIsAboveAllScreens(t *testing.T) {
	engine := newEngine(t, `isolation: [{name: pool, resource: orders, limit: 1}]`)
	guard, err := engine.Entry(t.Context(), "orders")
	require.NoError(t, err)
	defer guard.Exit()
	guard.Load()
	seen := watch(t, serve(t, console.Options{Engine: engine})+"/api/live?screen=history", `"load":{`)
	assert.Contains(t, seen, `"load":{"instance":"this process","level":"`)
}

func TestPlacesOfTheFleetAreShown(t *testing.T) {
	engine := core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: memory.New(clock.System()), Instance: "a"},
	})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("", []byte(`isolation: [{name: pool, resource: orders, limit: 7, scope: fleet}]`))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	address := serve(t, console.Options{Engine: engine})
	require.Eventually(t, func() bool { // the first places have to be leased
		guard, err := engine.Entry(t.Context(), "orders")
		if err == nil {
			t.Cleanup(guard.Exit)
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	seen := watch(t, address+"/api/live?screen=fleet", `"inUse":1`)
	assert.Contains(t, seen, `"key":"isolation/pool"`)
	assert.Contains(t, seen, `"limit":7`)
}

func TestWhoWaitsIsShown(t *testing.T) {
	engine := newEngine(t, `isolation: [{name: pool, resource: orders, limit: 1, maxWait: 1m, fairBy: tenant}]`)
	guard, err := engine.Entry(t.Context(), "orders", core.String("tenant", "acme"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if guard, err := engine.Entry(ctx, "orders", core.String("tenant", "<b>globex</b>")); err == nil {
				guard.Exit()
			}
		})
	}
	defer func() { cancel(); guard.Exit(); waiting.Wait() }()
	address := serve(t, console.Options{Engine: engine})
	seen := watch(t, address+"/api/live?screen=resource&name=orders", `"waiting":3,"tenants":1,"longest":3`)
	assert.Contains(t, seen, `globex\u003c/b\u003e (3); the next place goes to`)
}

func TestQuotasOfAValueAreShownAndMistakesNamed(t *testing.T) {
	engine := newEngine(t, `hotParam: [{name: plan, match: "*", perResource: false, param: tenant, limit: 10, window: 1h}]`)
	guard, err := engine.Entry(t.Context(), "orders", core.String("tenant", "acme"))
	require.NoError(t, err)
	guard.Exit()
	address := serve(t, console.Options{Engine: engine})
	watch(t, address+"/api/live?screen=quotas&of=tenant%3Dacme", `"rule":"plan","value":"acme"`)
	code, _, body := send(t, http.MethodGet, address+"/api/live?screen=quotas&of=tenant", "", nil)
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, body, "tenant")
}
