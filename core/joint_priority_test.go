package core_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// Calls of all priorities go through queues of their own and one that all share, and some
// give up. None waits longer than the rules let it, none keeps another from passing, and the
// important ones pass.
func TestCallsOfAllPrioritiesPassSeveralQueues(t *testing.T) {
	const maxWait = 500 * time.Millisecond
	inBubble(t, func(t *testing.T, e *core.Engine) {
		random := rand.New(rand.NewPCG(1, 2))
		names := []string{"a", "b", "c", "d", "e", "f"}
		var mu sync.Mutex
		passes := make(map[string][]clock.Instant)
		var all []clock.Instant
		came, passed := make(map[rule.Priority]int), make(map[rule.Priority]int)
		call := func(name string, p rule.Priority, patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			start := time.Now()
			guard, err := e.Entry(ctx, name, core.Priority(p))
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			assert.LessOrEqual(t, now.Sub(start), 2*maxWait+1, "a call that may pass at that instant waits for it")
			if err == nil {
				assert.LessOrEqual(t, now.Sub(start), 2*maxWait)
				guard.Exit()
				passed[p]++
				at := clock.Instant(now.UnixNano())
				passes[name], all = append(passes[name], at), append(all, at)
			}
		}
		var calls sync.WaitGroup
		for range 3000 { // 300 a second, of which 50 can pass
			p := rule.Priorities()[[]int{0, 1, 2, 2, 2, 3, 3, 3, 4, 4}[random.IntN(10)]]
			patience := time.Hour
			if random.IntN(5) == 0 {
				patience = time.Duration(random.Int64N(int64(maxWait)))
			}
			name := names[random.IntN(len(names))]
			came[p]++
			calls.Go(func() { call(name, p, patience) })
			time.Sleep(time.Second / 300)
		}
		calls.Wait()
		for _, name := range names {
			paced(t, passes[name], 50*time.Millisecond, maxWait, "own of "+name)
		}
		apart(t, all, 20*time.Millisecond, "shared")
		assert.GreaterOrEqual(t, len(all), 490, "the shared queue is used to the full")
		assert.Greater(t, passed[rule.PriorityCritical]*came[rule.PriorityLow], 3*passed[rule.PriorityLow]*came[rule.PriorityCritical])
	},
		flow.Rule{Name: "own", Match: "*", Limit: 20, Algorithm: flow.Throttle, MaxWait: maxWait},
		flow.Rule{Name: "shared", Match: "*", Shared: true, Limit: 50, Algorithm: flow.Throttle, MaxWait: maxWait},
	)
}
