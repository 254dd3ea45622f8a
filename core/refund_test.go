package core_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	fleetmemory "github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/rules"
)

// passing counts how many calls of a token pass one after the other.
func passing(t *testing.T, engine *core.Engine, opts ...core.Option) (count int) {
	t.Helper()
	for {
		guard, err := engine.Entry(t.Context(), "r", append(opts, core.NoWait())...)
		if err != nil {
			return count
		}
		guard.Exit()
		count++
	}
}

func refundEngine(t *testing.T, backend fleet.Backend, at clock.Clock, document string) *core.Engine {
	t.Helper()
	engine := core.New(core.Config{Clock: at, Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: backend, Instance: "one"}})
	t.Cleanup(engine.Close)
	set, err := rules.Parse("a.yaml", []byte(document))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	return engine
}

func TestRefundGivesBackWhatCountsAndNoMore(t *testing.T) {
	user := core.String("user", "alice")
	for _, document := range []string{
		"flow: [{resource: r, limit: 10, window: 1m}]",
		"flow: [{resource: r, limit: 10, window: 1m, strict: true}]",
		"flow: [{resource: r, limit: 10, window: 1m, algorithm: fixedWindow}]",
		"flow: [{resource: r, limit: 10, window: 10m, burst: 10, algorithm: tokenBucket}]",
		"flow: [{resource: r, limit: 10, window: 10m, burst: 10, algorithm: tokenBucket, maxWait: 1s}]",
		"hotParam: [{resource: r, param: user, limit: 10, window: 1m}]",
		"hotParam: [{resource: r, param: user, limit: 10, window: 1m, values: {alice: 10}}]",
		"hotParam: [{resource: r, param: user, limit: 10, window: 10m, algorithm: tokenBucket}]",
		"flow: [{resource: r, limit: 100, window: 1m}, {name: s, resource: r, limit: 10, window: 1m}]",
	} {
		at := clock.NewVirtual(time.Unix(1_000_000, 0))
		engine := refundEngine(t, nil, at, document)
		require.NoError(t, engine.Refund("r", user, core.Tokens(5)))
		for range 4 {
			if passing(t, engine, user) == 0 {
				break
			}
			at.Advance(time.Second)
		}
		require.NoError(t, engine.Refund("r", user, core.Tokens(4)), document)
		assert.Equal(t, 4, passing(t, engine, user), document)
		require.NoError(t, engine.Refund("r", user, core.Tokens(1<<31-1)), document)
		assert.Equal(t, 10, passing(t, engine, user), document)
		at.Advance(2 * time.Hour)
		require.NoError(t, engine.Refund("r", user, core.Tokens(7)), document)
		assert.Equal(t, 10, passing(t, engine, user), document)
		engine.Close()
		require.ErrorIs(t, engine.Refund("r", user), core.ErrClosed)
	}
}

func TestThrottleAndCallsUnderWayGiveNothingBack(t *testing.T) {
	for document, want := range map[string]int{
		"flow: [{resource: r, limit: 1, algorithm: throttle}]":                  0,
		"hotParam: [{resource: r, param: user, limit: 1, algorithm: throttle}]": 0,
		"isolation: [{resource: r, limit: 1}]":                                  1,
		"hotParam: [{resource: r, param: user, concurrency: 1}]":                1,
	} {
		engine := refundEngine(t, nil, clock.NewVirtual(time.Unix(1_000_000, 0)), document)
		user := core.String("user", "alice")
		guard, err := engine.Entry(t.Context(), "r", user)
		require.NoError(t, err)
		require.NoError(t, engine.Refund("r", user))
		_, err = engine.Entry(t.Context(), "r", user)
		require.ErrorIs(t, err, core.ErrBlocked, document)
		guard.Exit()
		if next, err := engine.Entry(t.Context(), "r", user); want == 1 {
			require.NoError(t, err, document)
			next.Exit()
		}
	}
}

func TestRefundIsHandedBackToTheFleet(t *testing.T) {
	user := core.String("user", "alice")
	for _, rule := range []string{
		"flow: [{resource: r, scope: fleet, limit: 10, window: 24h, fleet: {mode: ask}}]",
		"flow: [{resource: r, scope: fleet, limit: 10, window: 24h, algorithm: fixedWindow, fleet: {mode: ask}}]",
		"flow: [{resource: r, scope: fleet, limit: 10, window: 24h, algorithm: tokenBucket, fleet: {mode: ask}}]",
		"flow: [{resource: r, scope: fleet, limit: 10, window: 24h, fleet: {mode: share}}]",
		"hotParam: [{resource: r, scope: fleet, param: user, limit: 10, window: 24h, algorithm: tokenBucket, fleet: {mode: ask}}]",
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := refundEngine(t, fleetmemory.New(clock.System()), clock.System(), rule)
			defer engine.Close()
			passed := 0
			until := func(want int) {
				for end := time.Now().Add(time.Minute); passed < want && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					passed += passing(t, engine, user)
				}
				require.GreaterOrEqual(t, passed, want, rule)
			}
			until(10)
			require.NoError(t, engine.Refund("r", user, core.Tokens(4)))
			until(14)
			require.NoError(t, engine.Refund("r", user, core.Tokens(1_000_000)))
			until(24)
			passed += passing(t, engine, user)
			assert.Equal(t, 24, passed, "more was given back than the limit: "+rule)
		})
	}
}
