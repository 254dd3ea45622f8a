package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// waitersOf makes calls that wait, of known names and of names beyond the bound,
// and returns a function that waits for their end and tells what became of them.
func waitersOf(t *testing.T, e *core.Engine, names []string, each int) (end func() map[string]int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	for _, name := range names {
		for range each {
			wg.Go(func() {
				guard, err := e.Entry(context.Background(), name)
				guard.Exit()
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					outcomes["passed"]++
				case errors.Is(err, core.ErrBlocked):
					outcomes["blocked"]++
				case errors.Is(err, core.ErrClosed):
					outcomes["closed"]++
				}
			})
			synctest.Wait()
		}
	}
	return func() map[string]int {
		wg.Wait()
		return outcomes
	}
}

func TestWaitersInTheQueuesOfPatterns(t *testing.T) {
	queue := flow.Rule{Name: "q", Match: "n*", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Hour}
	changed := func(change func(r *flow.Rule)) []flow.Rule {
		r := queue
		change(&r)
		return []flow.Rule{r}
	}
	for name, test := range map[string]struct {
		then []flow.Rule
		took time.Duration
		want map[string]int
	}{
		// Three calls of each of four names, two of which share the overflow: one
		// passes at once on n0, on n1 and on the overflow.
		"nothing changes":     {[]flow.Rule{queue}, 5 * time.Second, map[string]int{"passed": 12}},
		"the rule goes":       {nil, 0, map[string]int{"passed": 12}},
		"it becomes faster":   {changed(func(r *flow.Rule) { r.Limit = 10 }), 500 * time.Millisecond, map[string]int{"passed": 12}},
		"it lets nobody wait": {changed(func(r *flow.Rule) { r.MaxWait = 0 }), 0, map[string]int{"passed": 3, "blocked": 9}},
		"it blocks all":       {changed(func(r *flow.Rule) { r.Limit = 0 }), 0, map[string]int{"passed": 3, "blocked": 9}},
		"it becomes a shadow": {changed(func(r *flow.Rule) { r.Shadow = true }), 0, map[string]int{"passed": 12}},
		"it is shared":        {changed(func(r *flow.Rule) { r.Shared = true }), 8 * time.Second, map[string]int{"passed": 12}},
		"another pattern":     {changed(func(r *flow.Rule) { r.Match = "x*" }), 0, map[string]int{"passed": 12}},
		"another limiter": {
			changed(func(r *flow.Rule) { r.Algorithm = flow.TokenBucket }), 5 * time.Second,
			map[string]int{"passed": 12},
		},
		"a window instead": {
			[]flow.Rule{{Name: "q", Match: "n*", Limit: 2}}, 0, map[string]int{"passed": 3 + 3, "blocked": 6},
		},
		// Whoever is refused gives its reservation back, and those behind move up.
		"a closed pattern beside it": {
			[]flow.Rule{queue, {Name: "closed", Match: "*", Limit: 0}}, time.Second, map[string]int{"passed": 3, "blocked": 9},
		},
		"a closed rule beside it that names some": {
			[]flow.Rule{queue, {Resource: "n0", Limit: 0}, {Resource: "n2", Limit: 0}, {Resource: "n3", Limit: 0}},
			2 * time.Second,
			map[string]int{"passed": 3 + 2, "blocked": 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := core.New(core.Config{Logger: quiet, MaxResources: 2})
				defer e.Close()
				load(t, e, queue)
				end := waitersOf(t, e, []string{"n0", "n1", "n2", "n3"}, 3)
				start := time.Now()
				load(t, e, test.then...)
				assert.Equal(t, test.want, end())
				assert.Equal(t, test.took, time.Since(start))
				for _, r := range e.Snapshot().Resources {
					assert.Zero(t, r.Waiting+r.InFlight, r.Name)
				}
			})
		})
	}
}

func TestCloseWakesTheWaitersOfPatterns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet, MaxResources: 1})
		load(t, e, flow.Rule{Match: "n*", Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Hour},
			flow.Rule{Name: "bucket", Match: "n*", Limit: 1, Algorithm: flow.TokenBucket, MaxWait: time.Hour, Shared: true})
		end := waitersOf(t, e, []string{"n0", "n1", "n2"}, 3)
		start := time.Now()
		e.Close()
		assert.Equal(t, map[string]int{"passed": 1, "closed": 8}, end())
		assert.Zero(t, time.Since(start))
	})
}
