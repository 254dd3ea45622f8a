package core_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
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

// TestValuesSharePlacesOnEightEngines has eight engines, each with the goroutine of its own, limit the
// calls of an account that are under way on all of them.
func TestValuesSharePlacesOnEightEngines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		set, err := rules.Parse("", []byte(`hotParam:
  - {name: exports, match: "exports:*", param: account, concurrency: 3, values: {vip: 6, banned: 0}, scope: fleet}`))
		require.NoError(t, err)
		store := fleetmemory.New(clock.System())
		engines := make([]*core.Engine, 8)
		for i := range engines {
			engines[i] = core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: store, Instance: strconv.Itoa(i)}})
			require.NoError(t, engines[i].Load(set))
		}
		time.Sleep(time.Second)
		var mu sync.Mutex
		underWay, most, passed := map[string]int{}, map[string]int{}, map[string]int{}
		var calls sync.WaitGroup
		random := rand.New(rand.NewPCG(1, 2))
		for range 3000 { // three seconds
			account, engine := []string{"a", "b", "vip", "banned"}[random.IntN(4)], engines[random.IntN(8)]
			lasts := time.Duration(1+random.IntN(40)) * time.Millisecond
			calls.Go(func() {
				g, err := engine.Entry(context.Background(), "exports:csv", core.String("account", account))
				if err != nil {
					return
				}
				mu.Lock()
				underWay[account]++
				most[account] = max(most[account], underWay[account])
				passed[account]++
				mu.Unlock()
				time.Sleep(lasts)
				mu.Lock()
				underWay[account]--
				mu.Unlock()
				g.Exit()
			})
			time.Sleep(time.Millisecond)
		}
		explained := engines[0].Explain("exports:csv")
		calls.Wait()
		assert.Equal(t, map[string]int{"a": 3, "b": 3, "vip": 6}, most)
		for account, n := range map[string]int{"a": 200, "b": 200, "vip": 400} { // 3 s / 20 ms · 3 are 450
			assert.Greater(t, passed[account], n, account)
		}
		require.Len(t, explained, 1)
		require.NotNil(t, explained[0].Fleet)
		assert.NotEmpty(t, explained[0].Values)
		limits := engines[0].Fleet().Status(clock.System().Now()).Limits
		require.Len(t, limits, 1)
		assert.Equal(t, "hotParam/exports", limits[0].Key)
		require.NotNil(t, limits[0].Places)
		for _, e := range engines {
			e.Close()
		}
	})
}

// TestPlacesOfValuesOutliveChangesOfTheRule has calls that were under way when a rule changed count by
// the new one, and an engine that ends give back its places.
func TestPlacesOfValuesOutliveChangesOfTheRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := fleetmemory.New(clock.System())
		load := func(e *core.Engine, concurrency int) {
			set, err := rules.Parse("", []byte(`hotParam:
  - {name: exports, resource: exports, param: account, concurrency: `+strconv.Itoa(concurrency)+`, scope: fleet}`))
			require.NoError(t, err)
			require.NoError(t, e.Load(set))
		}
		engines := make([]*core.Engine, 2)
		for i := range engines {
			engines[i] = core.New(core.Config{Logger: quiet, Fleet: fleet.Config{Backend: store, Instance: strconv.Itoa(i)}})
			load(engines[i], 3)
		}
		time.Sleep(time.Second)
		begin := func(e *core.Engine) *core.Guard {
			g, err := e.Entry(context.Background(), "exports", core.String("account", "a"))
			if err != nil {
				return nil
			}
			return &g
		}
		first := []*core.Guard{begin(engines[0]), begin(engines[0]), begin(engines[0])}
		assert.NotContains(t, first, (*core.Guard)(nil))
		assert.Nil(t, begin(engines[1]), "all are taken")
		load(engines[0], 1) // the other one is yet to be updated
		time.Sleep(time.Second)
		assert.Nil(t, begin(engines[0]), "more are under way than the rule allows")
		first[0].Exit()
		first[1].Exit()
		time.Sleep(time.Second)
		assert.Nil(t, begin(engines[1]), "the lower limit is that of all")
		first[2].Exit()
		time.Sleep(20 * time.Millisecond)
		last := begin(engines[1])
		require.NotNil(t, last)
		assert.Nil(t, begin(engines[0]))
		engines[1].Close() // with a call under way, which counts for a while
		assert.Nil(t, begin(engines[0]))
		time.Sleep(time.Second)
		assert.NotNil(t, begin(engines[0]))
		last.Exit()
		engines[0].Close()
	})
}
