package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestANameThatLeavesTheOverflowGetsNoSecondLimit(t *testing.T) {
	for name, test := range map[string]struct {
		rule  flow.Rule
		first int           // how many pass at once
		after time.Duration // has passed, a slot is free again
		then  int
	}{
		"window":            {flow.Rule{Limit: 5}, 5, time.Second, 5},
		"strict window":     {flow.Rule{Limit: 5, Strict: true}, 5, 1100 * time.Millisecond, 5},
		"fixed window":      {flow.Rule{Limit: 5, Algorithm: flow.FixedWindow}, 5, time.Second, 5},
		"a call in minutes": {flow.Rule{Limit: 0.01}, 1, 100 * time.Second, 1},
		"a fraction":        {flow.Rule{Limit: 2.5}, 2, time.Second, 2},
		"token bucket":      {flow.Rule{Limit: 5, Burst: 10, Algorithm: flow.TokenBucket}, 10, time.Second, 5},
		"overdraft":         {flow.Rule{Limit: 5, Algorithm: flow.TokenBucket, Overdraft: true}, 6, time.Second, 5},
		"throttle":          {flow.Rule{Limit: 2, Algorithm: flow.Throttle}, 1, 500 * time.Millisecond, 1},
		"shared":            {flow.Rule{Limit: 5, Shared: true}, 5, time.Second, 5},
		"warming up":        {flow.Rule{Limit: 30, WarmUp: flow.WarmUp{Period: 10 * time.Second}}, 10, time.Second, 10},
		"warming bucket": {
			flow.Rule{Limit: 3, Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: 10 * time.Second}}, 1, time.Second, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewVirtual(begin)
			e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 1})
			defer e.Close()
			test.rule.Name, test.rule.Match = "all", "*"
			load(t, e, test.rule)
			e.Resource("first") // takes the slot
			assert.Equal(t, test.first, enter(e, "x", 20))
			assert.NotContains(t, names(e), "x")

			load(t, e, test.rule, flow.Rule{Resource: "x", Limit: 1e6})
			assert.Equal(t, 0, enter(e, "x", 20), "has a resource of its own")
			assert.Contains(t, names(e), "x")
			c.Advance(test.after - 1)
			if limiterOf(test.rule) == byWindow && !test.rule.Strict {
				assert.Equal(t, 0, enter(e, "x", 20))
			}
			c.Advance(1)
			assert.Equal(t, test.then, enter(e, "x", 20), "when what was counted has left")
		})
	}
}

// What the overflow has not counted is no concern of a new name.
func TestANameThatComesAfterTheOverflowIsIdleHasAFullLimit(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 1})
	defer e.Close()
	load(t, e, flow.Rule{Match: "*", Limit: 5})
	enter(e, "first", 1)
	enter(e, "x", 9)
	c.Advance(2 * time.Minute)
	assert.Equal(t, 5, enter(e, "y", 9))
	assert.Equal(t, []string{rule.OtherResources, "y"}, names(e))
	assert.Equal(t, 5, enter(e, "x", 9), "in the overflow again")
}

// What Explain tells of a name that is new is what its first call finds.
func TestExplainTellsWhatTheOverflowHasCountedOfANewName(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 1})
	defer e.Close()
	load(t, e, flow.Rule{Match: "*", Limit: 5, Window: time.Hour})
	e.Resource("first")
	enter(e, "x", 3)
	c.Advance(2 * time.Minute)
	assert.Empty(t, e.Snapshot().Resources[1:], "tokens remain")
	assert.EqualValues(t, 2, e.Explain("y")[0].Quota.Remaining)
	assert.Equal(t, 2, enter(e, "y", 9))
}

// Names go to and fro between the overflow and resources of their own while calls of
// them are on their way: nothing that was counted here is free there.
func TestNamesThatEnterAndLeaveTheOverflowKeepTheirLimits(t *testing.T) {
	const limit, count = 25, 12
	for name, rule := range map[string]flow.Rule{
		"window": {Limit: limit, Window: 24 * time.Hour, Buckets: 1},
		"bucket": {Limit: limit, Window: 24 * time.Hour, Algorithm: flow.TokenBucket},
	} {
		t.Run(name, func(t *testing.T) {
			for range longtest.Short(20, 4) {
				e := core.New(core.Config{Clock: newTicking(time.Microsecond), Logger: quiet, MaxResources: 2})
				defer e.Close()
				rule.Name, rule.Match = "each", "n*"
				load(t, e, rule)
				var passed [count]atomic.Int64
				var calls, loads sync.WaitGroup
				var over atomic.Bool
				for range 4 {
					calls.Go(func() {
						for range 1000 {
							n := rand.IntN(count)
							if guard, err := e.Entry(context.Background(), fmt.Sprint("n", n)); err == nil {
								passed[n].Add(1)
								guard.Exit()
							}
						}
					})
				}
				loads.Go(func() {
					for i := 0; !over.Load(); i++ {
						named := flow.Rule{Name: "named", Resource: fmt.Sprint("n", i%count), Limit: 1e9}
						assert.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{rule, named}}))
					}
				})
				calls.Wait()
				over.Store(true)
				loads.Wait()
				for i := range passed {
					assert.LessOrEqual(t, passed[i].Load(), int64(limit), "n%d", i)
				}
			}
		})
	}
}
