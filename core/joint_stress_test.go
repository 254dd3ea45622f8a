package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
)

func TestCallsDoNotBlockEachOtherWhileTheirQueuesChangeOrderOrKind(t *testing.T) {
	t.Parallel()
	first, second := named("a", throttle("r", 1e6, time.Second)), named("b", throttle("r", 1e6, time.Second))
	third := named("c", throttle("r", 1e6, time.Second))
	first.Origin = "x"
	one := rules.Set{Flow: []flow.Rule{first, second, third}}
	first.Origin, second.Origin = "", "x"
	third.Algorithm = flow.TokenBucket
	other := rules.Set{Flow: []flow.Rule{first, second, third}}

	e := core.New(core.Config{Logger: quiet})
	t.Cleanup(e.Close)
	require.NoError(t, e.Load(one))
	var callers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				guard, _ := e.Entry(ctx, "r", core.Origin("x"))
				guard.Exit()
			}
		})
	}
	for range longtest.Short(1000, 200) {
		require.NoError(t, e.Load(other))
		require.NoError(t, e.Load(one))
	}
	stop()
	callers.Wait()
}
