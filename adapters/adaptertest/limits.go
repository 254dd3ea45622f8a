package adaptertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// queue lets one call a second pass, and the others wait.
func queue(resource string) rules.Set {
	return rules.Set{Flow: []flow.Rule{
		{Name: "turns", Resource: resource, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute},
	}}
}

// exactly lets exactLimit calls a second pass.
func exactly(resource string) rules.Set {
	return rules.Set{Flow: []flow.Rule{{Name: "rate", Resource: resource, Limit: exactLimit}}}
}

// isolated lets isolationLimit calls be under way.
func isolated(resource string) rules.Set {
	return rules.Set{Isolation: []isolation.Rule{{Name: "places", Resource: resource, Limit: isolationLimit}}}
}

// limitedCalls are calls of a resource that has a limit, of any suite.
type limitedCalls struct {
	engine   *core.Engine
	clock    *clock.Virtual
	timeout  time.Duration
	resource string

	call      func(context.Context) error // an error if the call was not served
	isRefusal func(error) bool            // whether the guard refused it, with the reason of the limit
	served    *atomic.Int64               // how many calls were
}

// start makes a call on a goroutine of its own.
func (c limitedCalls) start(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.call(ctx) }()
	return done
}

// passOnTime checks that the second of two calls passes a second after the first. The limit
// must be that of queue.
func (c limitedCalls) passOnTime(t *testing.T) {
	t.Helper()
	require.NoError(t, c.call(t.Context()))
	second := c.start(t.Context())
	requireTimer(t, c.timeout, c.clock)
	c.clock.Advance(time.Second - 1)
	assert.EqualValues(t, 1, c.served.Load())
	c.clock.Advance(1)
	require.NoError(t, receive(t, c.timeout, second))
	assert.EqualValues(t, 1, requireEnded(t, c.timeout, c.engine, c.resource, 2).Waited)
}

// freeTheirPlaces checks that a call whose caller cancels it while it waits leaves the queue,
// and returns its error. The limit must be that of queue.
func (c limitedCalls) freeTheirPlaces(t *testing.T) (left error) {
	t.Helper()
	require.NoError(t, c.call(t.Context()))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	second := c.start(ctx)
	requireTimer(t, c.timeout, c.clock)
	leave()
	left = receive(t, c.timeout, second)
	requireNoneUnderWay(t, c.timeout, []*core.Engine{c.engine})
	third := c.start(t.Context())
	requireTimer(t, c.timeout, c.clock)
	c.clock.Advance(time.Second) // that of the one that has left
	require.NoError(t, receive(t, c.timeout, third))
	requireEnded(t, c.timeout, c.engine, c.resource, 2)
	assert.EqualValues(t, 2, c.served.Load())
	return left
}

// exactLimit is the limit of exactlyTheLimit, a second.
const exactLimit = 50

// exactlyTheLimit checks that in each of some seconds as many of the calls of several
// goroutines pass as may. The limit must be exactLimit.
func (c limitedCalls) exactlyTheLimit(t *testing.T, seconds int) {
	t.Helper()
	const callers, each = 8, 25
	for second := range seconds {
		var passed, refused atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range each {
					if err := c.call(t.Context()); err == nil {
						passed.Add(1)
					} else if assert.True(t, c.isRefusal(err), "neither passed nor refused: %v", err) {
						refused.Add(1)
					}
				}
			})
		}
		all.Wait()
		assert.EqualValues(t, exactLimit, passed.Load())
		assert.EqualValues(t, callers*each-exactLimit, refused.Load())
		assert.EqualValues(t, exactLimit*(second+1), c.served.Load())
		c.clock.Advance(time.Second)
	}
	ended := requireEnded(t, c.timeout, c.engine, c.resource, seconds*exactLimit)
	assert.EqualValues(t, seconds*exactLimit, ended.Passed)
	assert.EqualValues(t, seconds*(callers*each-exactLimit), ended.Blocked)
	assert.Zero(t, ended.Failed)
}

// takeNothingOnceEnded checks that calls whose context has ended fail before they are served, and that
// as many pass afterwards as may. The limit must be exactLimit.
func (c limitedCalls) takeNothingOnceEnded(t *testing.T) {
	t.Helper()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	for range 3 {
		require.Error(t, c.call(canceled))
		require.Error(t, c.call(late))
	}
	assert.Zero(t, c.served.Load())
	requireNoneUnderWay(t, c.timeout, []*core.Engine{c.engine})
	for range exactLimit {
		require.NoError(t, c.call(t.Context()), "nothing was taken")
	}
	assert.True(t, c.isRefusal(c.call(t.Context())))
}

// isolationLimit is the limit of neverMoreUnderWay.
const isolationLimit = 3

// occupancy counts the calls that are served at once, and keeps them until they are released.
type occupancy struct {
	under, most atomic.Int64
	arrived     chan struct{}
	released    chan struct{}
}

func newOccupancy() *occupancy {
	return &occupancy{arrived: make(chan struct{}, 100), released: make(chan struct{})}
}

// serve is what serves a call.
func (o *occupancy) serve(t *testing.T) {
	t.Helper()
	now := o.under.Add(1)
	defer o.under.Add(-1)
	for seen := o.most.Load(); now > seen && !o.most.CompareAndSwap(seen, now); seen = o.most.Load() {
	}
	o.arrived <- struct{}{}
	hold(t, o.released)
}

// neverMoreUnderWay checks that calls are refused while as many are served as may. The limit
// must be isolationLimit.
func (c limitedCalls) neverMoreUnderWay(t *testing.T, o *occupancy) {
	t.Helper()
	const more = 5
	var refused atomic.Int64
	var all sync.WaitGroup
	start := func(callers int) {
		for range callers {
			all.Go(func() {
				if err := c.call(t.Context()); err != nil && assert.True(t, c.isRefusal(err), "neither passed nor refused: %v", err) {
					refused.Add(1)
				}
			})
		}
	}
	start(isolationLimit)
	for range isolationLimit {
		receive(t, c.timeout, o.arrived)
	}
	start(more)
	assert.Eventually(t, func() bool { return refused.Load() == more }, c.timeout, interval)
	close(o.released)
	all.Wait()
	assert.EqualValues(t, isolationLimit, o.most.Load())
	requireEnded(t, c.timeout, c.engine, c.resource, isolationLimit)
	require.NoError(t, c.call(t.Context()), "places are free again")
}
