package adaptertest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// enginePool returns an engine with an adaptive rule for all inbound calls, and a pool that does one
// call after the other.
func enginePool(t *testing.T) *core.Engine {
	t.Helper()
	engine, _ := NewEngine(t, rules.Set{
		Adaptive:  []adaptive.Rule{{Name: "shed"}},
		Isolation: []isolation.Rule{{Resource: "pool", Limit: 1, MaxWait: time.Minute}},
	})
	return engine
}

// askPool makes a call of the pool that takes no time.
func askPool(ctx context.Context, engine *core.Engine) error {
	return engine.Do(ctx, "pool", func(context.Context) error { return nil })
}

// requireNotUnderWay has a call of the resource, whose handler asks the pool, wait for that, and
// checks that the adaptive rule does not count it meanwhile.
func requireNotUnderWay(t *testing.T, timeout time.Duration, engine *core.Engine, resource string, call func(context.Context) error) {
	t.Helper()
	busy, err := engine.Entry(t.Context(), "pool")
	require.NoError(t, err)
	waits := func() bool { return engine.Resource("pool").Snapshot().Waiting == 1 }
	done := make(chan error, 1)
	first, leave := context.WithCancel(t.Context())
	defer leave()
	go func() { done <- askPool(first, engine) }() // contexts of calls are linked once one has waited
	require.Eventually(t, waits, timeout, interval)
	leave()
	require.ErrorIs(t, receive(t, timeout, done), context.Canceled)

	go func() { done <- call(t.Context()) }()
	require.Eventually(t, waits, timeout, interval)
	isUnderWay := func() bool { // a moment longer than until one waits
		for _, r := range engine.Resource(resource).Snapshot().Rules {
			if r.Name == "shed" {
				return r.Gauges[1] != 0
			}
		}
		return true
	}
	counted := !assert.Eventually(t, func() bool { return !isUnderWay() }, timeout, interval,
		"the context of the handler has to be that of the guard, see core.Guard.Context")
	busy.Exit()
	require.NoError(t, receive(t, timeout, done))
	require.False(t, counted)
}
