package flow_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// However many goroutines make calls of however many tokens, and give some back: no
// window holds more than the limit, and on average not more than the effective limit passes.
func TestLimitsHoldForLargeCallsOfManyGoroutines(t *testing.T) {
	t.Parallel()
	const (
		limit, buckets = 100, 10
		rounds         = 600 // of a bucket each
	)
	g := newGate(t, flow.Rule{Resource: "r", Limit: limit, WarmUp: flow.WarmUp{Period: 24 * time.Hour}})
	var passed [rounds]int
	total := 0
	for round := range rounds {
		var taken atomic.Int64
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				n := []int32{40, 100, 1, 60}[(worker+round/100)%4]
				for range 5 {
					if g.window.Take(g.compiled, g.now, n) != rule.Pass {
						continue
					}
					if worker == 1 {
						g.window.GiveBack(g.compiled, g.now, n)
					} else {
						taken.Add(int64(n))
					}
				}
			})
		}
		wg.Wait()
		passed[round] = int(taken.Load())
		total += passed[round]
		require.LessOrEqual(t, sum(passed[max(0, round-buckets+1):round+1]), limit, "round %d", round)
		g.wait(100 * time.Millisecond)
	}
	effective, _, _ := g.window.Status(g.now)
	const seconds = rounds / buckets
	require.LessOrEqual(t, float64(total), effective*seconds+effective+limit)
	require.GreaterOrEqual(t, float64(total), limit/3.0*seconds*0.8)
}
