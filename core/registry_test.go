package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func names(e *core.Engine) (names []string) {
	for _, r := range e.Snapshot().Resources {
		names = append(names, r.Name)
	}
	return names
}

func TestNamesBeyondTheBoundShareStatisticsAndNothingElse(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 10})
	defer e.Close()
	for i := range 1000 {
		enter(e, fmt.Sprint("name", i), 1)
	}
	handle := e.Resource("ruled") // has no slot either

	all := e.Snapshot().Resources
	require.Len(t, all, 11)
	assert.Equal(t, rule.OtherResources, all[0].Name)
	var passed uint64
	for _, r := range all {
		passed += r.Passed
	}
	assert.EqualValues(t, 1000, passed)

	load(t, e, flow.Rule{Resource: "ruled", Limit: 3}, flow.Rule{Resource: "name999", Limit: 2})
	assert.Equal(t, 2, enter(e, "name999", 10))
	assert.Equal(t, 2, enter(e, "ruled", 2))
	_, err := handle.Entry(t.Context())
	require.NoError(t, err)
	_, err = handle.Entry(t.Context())
	require.ErrorIs(t, err, core.ErrBlocked, "a handle finds the rule that came later")
	assert.Len(t, e.Snapshot().Resources, 13)
}

func TestIdleResourcesAreForgottenUnlessARuleNamesThem(t *testing.T) {
	e, c := newEngine(t, flow.Rule{Resource: "ruled", Limit: 1})
	handle := e.Resource("idle")
	enter(e, "idle", 1)
	enter(e, "ruled", 1)
	busy, err := e.Entry(t.Context(), "busy")
	require.NoError(t, err)
	require.Equal(t, []string{"busy", "idle", "ruled"}, names(e))

	c.Advance(2 * time.Minute)
	require.Equal(t, []string{"busy", "ruled"}, names(e), "one is under way, one is named")

	guard, err := handle.Entry(t.Context())
	require.NoError(t, err)
	guard.Exit()
	busy.Exit()
	require.Equal(t, []string{"busy", "idle", "ruled"}, names(e), "a handle outlives its resource")
	assert.EqualValues(t, 1, handle.Snapshot().Passed)

	load(t, e)
	c.Advance(2 * time.Minute)
	require.Empty(t, names(e))
}

func TestForgettingLosesNoCallThatIsUnderWay(t *testing.T) {
	e, c := newEngine(t)
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				guard, err := e.Entry(context.Background(), fmt.Sprint(i%7))
				assert.NoError(t, err)
				guard.Exit()
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			c.Advance(time.Minute) // everything is idle all the time
			for _, r := range e.Snapshot().Resources {
				assert.GreaterOrEqual(t, r.InFlight, int64(0))
			}
		}
	}
	for _, r := range e.Snapshot().Resources {
		assert.EqualValues(t, 0, r.InFlight, r.Name)
	}
}
