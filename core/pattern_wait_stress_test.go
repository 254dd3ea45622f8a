package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Waiters that give up, reloads that take their queues away, and callers of many
// names: nobody hangs, nothing stays under way, no call passes too early.
func TestQueuesOfPatternsUnderStress(t *testing.T) {
	e := core.New(core.Config{Logger: quiet, MaxResources: 4})
	defer e.Close()
	queue := flow.Rule{Name: "q", Match: "n*", Limit: 5000, Algorithm: flow.Throttle, MaxWait: 20 * time.Millisecond}
	bucket := flow.Rule{Name: "b", Match: "*", Limit: 20_000, Algorithm: flow.TokenBucket, Burst: 5, MaxWait: 10 * time.Millisecond}
	load(t, e, queue, bucket)
	var guards sync.Map
	storm(t, e, 64, 300, func(i int) rules.Set {
		q, b := queue, bucket
		q.Shared = i%7 == 0
		q.Shadow = i%5 == 0
		q.Limit += float64(i % 3)
		if b.Shared = i%11 == 0; i%3 == 0 {
			return rules.Set{Flow: []flow.Rule{b}}
		}
		return rules.Set{Flow: []flow.Rule{q, b}}
	}, func(i int) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%10)*time.Millisecond)
		defer cancel()
		guard, err := e.Entry(ctx, fmt.Sprint("n", i%9))
		switch {
		case err == nil && i%3 == 0:
			guards.Store(i, &guard) // exits when its rules are gone
		case err == nil:
			guard.Exit()
		case !errors.Is(err, core.ErrBlocked):
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
	load(t, e)
	guards.Range(func(_, guard any) bool {
		guard.(*core.Guard).Exit()
		return true
	})
	for _, r := range e.Snapshot().Resources {
		assert.Zero(t, r.InFlight, r.Name)
		assert.Zero(t, r.Waiting, r.Name)
		assert.Equal(t, r.Passed, r.Completed, r.Name)
	}
}
