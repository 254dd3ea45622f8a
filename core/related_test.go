package core_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestCallsAreRefusedWhileARelatedResourceIsBusy(t *testing.T) {
	for _, algorithm := range []flow.Algorithm{flow.SlidingWindow, flow.FixedWindow} {
		e, c := newEngine(t, flow.Rule{Resource: "read", Limit: 5, Related: "write", Algorithm: algorithm})
		assert.Equal(t, 20, enter(e, "read", 20), "its own passes do not count")
		assert.Equal(t, 4, enter(e, "write", 4))
		assert.Equal(t, 20, enter(e, "read", 20), "one more can pass")
		assert.Equal(t, 3, enter(e, "write", 3), "the busy one is not limited")
		assert.Equal(t, 0, enter(e, "read", 20))
		c.Advance(time.Second)
		assert.Equal(t, 20, enter(e, "read", 20))
	}
}

func TestOnlyPassesOfTheRelatedResourceCount(t *testing.T) {
	e, _ := newEngine(t,
		flow.Rule{Name: "related", Resource: "read", Limit: 5, Related: "write"},
		flow.Rule{Resource: "write", Limit: 4},
	)
	assert.Equal(t, 4, enter(e, "write", 100))
	assert.Equal(t, 1, enter(e, "read", 1))
}

func TestARelatedRuleOnAPatternCountsOnce(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Match: "read:*", Limit: 2, Related: "write"})
	assert.Equal(t, 2, enter(e, "read:a", 2))
	assert.Equal(t, 2, enter(e, "write", 2))
	assert.Equal(t, 0, enter(e, "read:a", 2))
	assert.Equal(t, 0, enter(e, "read:b", 2))
	load(t, e, flow.Rule{Match: "read:*", Limit: 3, Related: "write"})
	assert.Equal(t, 2, enter(e, "read:b", 2), "what was counted stays")
	load(t, e)
	assert.Equal(t, 9, enter(e, "write", 9))
	assert.Equal(t, 9, enter(e, "read:b", 9))
}

func TestEveryPassOfTheRelatedResourceIsCounted(t *testing.T) {
	const calls, goroutines = 2000, 16
	ticks := newTicking(time.Microsecond)
	e := core.New(core.Config{Clock: ticks, Logger: quiet})
	defer e.Close()
	rule := flow.Rule{Name: "x", Resource: "read", Limit: calls*goroutines + 1, Window: time.Hour, Buckets: 1000, Related: "write"}
	load(t, e, rule)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { enter(e, "write", calls) })
	}
	for i := range 50 {
		rule.Buckets = 900 + 100*(i%2)
		load(t, e, rule)
	}
	wg.Wait()
	require.Len(t, e.Quotas("read"), 1)
	assert.EqualValues(t, 1, e.Quotas("read")[0].Quota.Remaining)
}

func TestTheRelatedResourceIsNotGuardedThoughItMatches(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Match: "db:*", Limit: 2, Related: "db:write"})
	assert.Equal(t, 5, enter(e, "db:write", 5))
	assert.Equal(t, 0, enter(e, "db:read", 5))
}
