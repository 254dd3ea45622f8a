package core_test

import (
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

func TestEachMatchingResourceHasItsOwnLimit(t *testing.T) {
	for _, pattern := range []string{"orders:*", "~^orders:.*$"} {
		e, c := newEngine(t, flow.Rule{Match: pattern, Limit: 3})
		assert.Equal(t, 3, enter(e, "orders:create", 5))
		assert.Equal(t, 3, enter(e, "orders:list", 5))
		assert.Equal(t, 5, enter(e, "users:list", 5), "not matched")
		c.Advance(time.Second)
		assert.Equal(t, 3, enter(e, "orders:create", 5))
	}
}

func TestMatchingResourcesMayShareOneLimit(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Match: "orders:*", Limit: 3, Shared: true})
	assert.Equal(t, 2, enter(e, "orders:create", 2))
	assert.Equal(t, 1, enter(e, "orders:list", 5))
	var block *core.BlockError
	_, err := e.Entry(t.Context(), "orders:list")
	require.ErrorAs(t, err, &block)
	assert.Equal(t, "orders:list", block.Resource)
	assert.Equal(t, "orders:*", block.Rule)
}

func TestAllThatAppliesToAResourceHolds(t *testing.T) {
	all := []flow.Rule{
		{Resource: "orders:create", Limit: 5},
		{Match: "orders:*", Limit: 8},
		{Match: "*:create", Limit: 7, Shared: true},
	}
	for i := range all {
		rules := append([]flow.Rule(nil), all...)
		rules[i].Limit = 2
		e, _ := newEngine(t, rules...)
		assert.Equal(t, 2, enter(e, "orders:create", 10), "rule %d is the tightest", i)
	}
}

func TestAPatternAppliesToResourcesThatAreKnownAlready(t *testing.T) {
	e, c := newEngine(t)
	assert.Equal(t, 5, enter(e, "orders:create", 5))
	handle := e.Resource("orders:list")
	load(t, e, flow.Rule{Match: "orders:*", Limit: 2})
	assert.Equal(t, 2, enter(e, "orders:create", 5))
	for range 2 {
		_, err := handle.Entry(t.Context())
		require.NoError(t, err)
	}
	_, err := handle.Entry(t.Context())
	require.ErrorIs(t, err, core.ErrBlocked)

	t.Run("a changed limit keeps what was counted", func(t *testing.T) {
		load(t, e, flow.Rule{Match: "orders:*", Limit: 3})
		assert.Equal(t, 1, enter(e, "orders:create", 5))
	})
	t.Run("another pattern under the same name lets go of what it matched", func(t *testing.T) {
		load(t, e, flow.Rule{Name: "orders:*", Match: "users:*", Limit: 1})
		assert.Equal(t, 5, enter(e, "orders:create", 5))
		assert.Equal(t, 1, enter(e, "users:list", 5))
	})
	t.Run("none is left", func(t *testing.T) {
		load(t, e)
		c.Advance(time.Second)
		assert.Equal(t, 9, enter(e, "users:list", 9))
	})
}

func TestQueuesOfPatterns(t *testing.T) {
	e, _ := newEngine(t, flow.Rule{Match: "q*", Limit: 10, Algorithm: flow.Throttle})
	assert.Equal(t, 1, enter(e, "q1", 5))
	assert.Equal(t, 1, enter(e, "q2", 5))
	load(t, e, flow.Rule{Match: "q*", Limit: 10, Algorithm: flow.Throttle, Shared: true})
	assert.Equal(t, 1, enter(e, "q1", 5))
	assert.Equal(t, 0, enter(e, "q2", 5))
}

// Names that clients choose: the first few have limits of their own, the others
// share one, and none goes without.
func TestPatternsHoldBeyondTheBoundOnNames(t *testing.T) {
	for _, shared := range []bool{false, true} {
		c := clock.NewVirtual(begin)
		e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 10})
		defer e.Close()
		load(t, e, flow.Rule{Match: "user:*", Limit: 2, Shared: shared})
		passed := 0
		for i := range 3000 {
			passed += enter(e, fmt.Sprint("user:", i), 3)
		}
		if shared {
			assert.Equal(t, 2, passed)
		} else {
			assert.Equal(t, 10*2+2, passed)
		}
		assert.Equal(t, 3, enter(e, "free", 3), "no pattern matches it")
		assert.Len(t, e.Snapshot().Resources, 11)

		load(t, e, flow.Rule{Match: "user:*", Limit: 3, Shared: shared})
		assert.Equal(t, 1, enter(e, "user:2999", 3), "the limit was raised by one")
		load(t, e)
		assert.Equal(t, 3, enter(e, "user:2999", 3))

		overflow := e.Snapshot().Resources[0]
		assert.Equal(t, rule.OtherResources, overflow.Name)
		assert.NotZero(t, overflow.Blocked)
	}
}

func TestRefusalsOfTheOverflowAreCounted(t *testing.T) {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxResources: 1})
	defer e.Close()
	load(t, e, flow.Rule{Match: "*", Limit: 0})
	for i := range 5 {
		var block *core.BlockError
		name := fmt.Sprint("name", i)
		_, err := e.Entry(t.Context(), name)
		require.ErrorAs(t, err, &block)
		assert.Equal(t, name, block.Resource)
	}
	overflow := e.Snapshot().Resources[0]
	require.Len(t, overflow.Rules, 1)
	assert.EqualValues(t, 4, overflow.Rules[0].Blocked)
}

// A resource is not forgotten as long as a pattern's rule counts its calls.
func TestAMatchedResourceIsForgottenOnceNothingIsCountedOfIt(t *testing.T) {
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet, MaxResources: 5})
	defer e.Close()
	load(t, e, flow.Rule{Match: "*", Limit: 2, Window: time.Hour})
	assert.Equal(t, 2, enter(e, "a", 5))
	for range 20 {
		c.Advance(2 * time.Minute)
		assert.Contains(t, names(e), "a")
	}
	assert.Equal(t, 0, enter(e, "a", 5))
	c.Advance(2 * time.Hour)
	assert.NotContains(t, names(e), "a")
	assert.Equal(t, 2, enter(e, "a", 5))
}

func TestPatternsUnderConcurrencyAndReloads(t *testing.T) {
	ticks := newTicking(10 * time.Microsecond)
	e := core.New(core.Config{Clock: ticks, Logger: quiet, MaxResources: 8})
	defer e.Close()
	rule := flow.Rule{Name: "all", Match: "r*", Limit: 100, Window: time.Hour, Buckets: 1}
	load(t, e, rule)
	var wg sync.WaitGroup
	passed := make([]int, 16)
	for i := range passed {
		wg.Go(func() {
			for range 50 {
				passed[i] += enter(e, fmt.Sprint("r", i/2), 10) // two goroutines a name
			}
		})
	}
	for i := range 100 {
		noise := flow.Rule{Name: "noise", Match: "*", Limit: 1e6 + float64(i)}
		load(t, e, rule, noise)
	}
	wg.Wait()
	for i := 0; i < len(passed); i += 2 {
		assert.Equal(t, 100, passed[i]+passed[i+1], "r%d", i/2)
	}
}
