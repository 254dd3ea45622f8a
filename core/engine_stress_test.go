package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Sixty-four goroutines, patterns, reloads, eviction and more names than there is
// room for: each limit holds, and every call is accounted for.
func TestLimitsHoldUnderEverythingAtOnce(t *testing.T) {
	const limit, shared, goroutines, calls = 40, 300, 64, 4000
	ticks := newTicking(5 * time.Millisecond) // minutes pass
	var refused atomic.Int64
	e := core.New(core.Config{Clock: ticks, Logger: quiet, MaxResources: 12, Observer: core.Observer{
		Refused: func(context.Context, *core.BlockError) { refused.Add(1) },
	}})
	defer e.Close()
	each := flow.Rule{Name: "each", Match: "k:*", Limit: limit, Window: 24 * time.Hour, Buckets: 1}
	together := flow.Rule{Name: "together", Match: "s:*", Limit: shared, Window: 24 * time.Hour, Buckets: 1, Shared: true}
	load(t, e, each, together)
	passed := make([][40]atomic.Int64, 3)
	var blocked, all atomic.Int64
	storm(t, e, goroutines, calls, func(i int) rules.Set {
		set := rules.Set{Flow: []flow.Rule{each, together}}
		switch i % 4 {
		case 1:
			set.Flow = append(set.Flow, flow.Rule{Name: "noise", Match: "*", Limit: 1e9 - float64(i)})
		case 2:
			set.Flow = append(set.Flow, flow.Rule{Name: "named", Resource: fmt.Sprint("k:", i%40), Limit: 1e9})
		case 3:
			set.Flow[0].Origin = "" // the same
			set.Flow = append(set.Flow, flow.Rule{Name: "shadow", Match: "*", Limit: 1, Shadow: true})
		}
		return set
	}, func(i int) {
		kind, n := i%3, rand.IntN(40)
		name := fmt.Sprint([]string{"k:", "s:", "free:"}[kind], n)
		guard, err := e.Entry(context.Background(), name)
		all.Add(1)
		if err != nil {
			assert.ErrorIs(t, err, core.ErrBlocked)
			assert.NotEqual(t, 2, kind, name)
			blocked.Add(1)
			return
		}
		passed[kind][n].Add(1)
		guard.Exit()
	})

	sum := int64(0)
	for i := range passed[0] {
		assert.LessOrEqual(t, passed[0][i].Load(), int64(limit), "k:%d, by itself and in the overflow", i)
		sum += passed[1][i].Load()
	}
	assert.EqualValues(t, shared, sum)
	assert.Equal(t, blocked.Load(), refused.Load())
	for _, r := range e.Snapshot().Resources {
		assert.Zero(t, r.InFlight, r.Name)
		assert.Zero(t, r.Waiting, r.Name)
		assert.Equal(t, r.Passed, r.Completed, r.Name)
	}
}

// Without eviction the statistics have each call once, wherever it was counted.
func TestEveryCallIsCountedOnceBeyondTheBoundOnNames(t *testing.T) {
	const goroutines, calls = 64, 3000
	e := core.New(core.Config{Clock: newTicking(time.Microsecond), Logger: quiet, MaxResources: 10})
	defer e.Close()
	var passed, blocked atomic.Uint64
	storm(t, e, goroutines, calls, func(i int) rules.Set {
		return rules.Set{Flow: []flow.Rule{
			{Name: "p", Match: "n:*", Limit: float64(20 + i%2)},
			{Name: "q", Match: "n:?", Limit: 50, Shared: i%3 == 0},
			{Name: "b", Match: "n:*", Limit: 100, Algorithm: flow.TokenBucket},
			{Name: "x", Resource: fmt.Sprint("n:", i%30), Limit: 5},
		}}
	}, func(i int) {
		guard, err := e.Entry(context.Background(), fmt.Sprint("n:", i%50))
		if err != nil {
			blocked.Add(1)
			return
		}
		passed.Add(1)
		guard.Exit()
	})
	var gotPassed, gotBlocked uint64
	for _, r := range e.Snapshot().Resources {
		gotPassed += r.Passed
		gotBlocked += r.Blocked
		assert.Zero(t, r.InFlight, r.Name)
	}
	assert.Equal(t, passed.Load(), gotPassed)
	assert.Equal(t, blocked.Load(), gotBlocked)
}
