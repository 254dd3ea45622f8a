package core_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// Calls wait at the adaptive rule, at the ones after it, give up, are refused, and go on
// while others do: each counts as under way once, and in the end none does.
func TestCallsThatWaitForSeveralRulesAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		set := rules.Set{
			Adaptive:  []adaptive.Rule{{Resource: "r", InitialLimit: 3, MaxLimit: 6}},
			Isolation: []isolation.Rule{{Resource: "r", Limit: 2, MaxWait: 40 * time.Millisecond, MaxQueue: 3}},
			Flow:      []flow.Rule{{Resource: "r", Limit: 200, Algorithm: flow.Throttle, MaxWait: 20 * time.Millisecond}},
		}
		require.NoError(t, e.Load(set))
		inFlight := func() (status []float64) {
			for _, r := range e.Resource("r").Snapshot().Rules {
				if r.Kind == "adaptive" {
					return r.Gauges
				}
			}
			return nil
		}
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(50))*time.Millisecond)
					guard, err := e.Entry(ctx, "r")
					time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond)
					if err == nil && random.IntN(50) == 0 {
						assert.LessOrEqual(t, inFlight()[1], 40.)
					}
					guard.Exit()
					cancel()
				}
			})
		}
		all.Wait()
		require.Equal(t, []float64{0, 0}, inFlight()[1:3], "under way and waiting")
		guard, err := e.Entry(t.Context(), "r")
		require.NoError(t, err)
		require.InDelta(t, 1, inFlight()[1], 0)
		guard.Exit()
	})
}
