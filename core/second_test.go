package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestSecondsReturnWhatHappenedInASecond(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	engine := core.New(core.Config{Clock: virtual, Logger: quiet})
	defer engine.Close()
	call := func(resource string, took time.Duration) {
		guard, err := engine.Entry(t.Context(), resource)
		require.NoError(t, err)
		virtual.Advance(took)
		guard.Exit()
	}
	call("before", 0)
	virtual.Advance(time.Second)
	read := engine.Seconds(virtual.Now())
	call("b", 100*time.Millisecond)
	call("a", time.Second)
	at := virtual.Now()

	var names []string
	for _, s := range read(at.Add(-time.Second)) {
		names = append(names, s.Resource)
		assert.EqualValues(t, 1, s.Passed)
		assert.EqualValues(t, 1, s.MaxInFlight)
		assert.Equal(t, virtual.Now().Add(-1100*time.Millisecond), s.Start)
	}
	assert.Equal(t, []string{"a", "b"}, names)
	second := read(at)
	require.Len(t, second, 1, "nothing happened on b")
	assert.Zero(t, second[0].Passed)
	assert.EqualValues(t, 1, second[0].Completed)
	assert.Equal(t, time.Second, second[0].MeanResponseTime())
	assert.Empty(t, read(at.Add(5*time.Second)))
}

func TestSecondsReturnLateCountsWithTheNextSecond(t *testing.T) {
	late := &laggingClock{Virtual: clock.NewVirtual(time.Unix(1000, 0))}
	engine := core.New(core.Config{Clock: late, Logger: quiet})
	defer engine.Close()
	read := engine.Seconds(late.Now())
	call := func(lag time.Duration) {
		late.lag.Store(int64(lag))
		defer late.lag.Store(0)
		guard, err := engine.Entry(t.Context(), "r")
		require.NoError(t, err)
		guard.Exit()
	}
	call(0)
	first := late.Now()
	late.Advance(2 * time.Second)
	assert.EqualValues(t, 1, read(first)[0].Passed)
	call(2 * time.Second)
	second := read(first.Add(time.Second))
	require.Len(t, second, 1)
	assert.EqualValues(t, 1, second[0].Passed)
	assert.EqualValues(t, 1, second[0].Completed)
	assert.Zero(t, second[0].MaxInFlight, "in that second there was no call")
}

func TestSecondsReturnWhatItMissedOfForgottenResources(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(1000, 0))
	engine := core.New(core.Config{Clock: virtual, Logger: quiet})
	defer engine.Close()
	call := func(name string) {
		guard, err := engine.Entry(t.Context(), name)
		require.NoError(t, err)
		guard.Exit()
	}
	call("old")
	virtual.Advance(2 * time.Minute)
	call("new") // forgets the old one
	read := engine.Seconds(virtual.Now())
	call("read")
	assert.Len(t, read(virtual.Now()), 2)
	call("read")
	call("missed")
	virtual.Advance(2 * time.Minute)
	call("new")
	seconds := read(virtual.Now())
	require.Len(t, seconds, 2)
	assert.Equal(t, rule.OtherResources, seconds[0].Resource)
	assert.EqualValues(t, 2, seconds[0].Passed)
	assert.Equal(t, "new", seconds[1].Resource)
	assert.EqualValues(t, 1, seconds[1].Passed)
}

// laggingClock is a clock that some readers see late, as if they had stood still since they
// read it.
type laggingClock struct {
	*clock.Virtual
	lag atomic.Int64
}

// Now implements [clock.Clock].
func (c *laggingClock) Now() clock.Instant { return c.Virtual.Now().Add(-time.Duration(c.lag.Load())) }

// Goroutines call more resources than there may be, the clocks of some calls are late, and
// resources are forgotten while they are called. Each call is in one second that is read.
func TestSecondsSumUpToAllCalls(t *testing.T) {
	t.Parallel()
	late := &laggingClock{Virtual: clock.NewVirtual(time.Unix(1000, 0))}
	engine := core.New(core.Config{Clock: late, Logger: quiet, MaxResources: 20})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Isolation: []isolation.Rule{
		{Name: "all", Match: "r*", Shared: true, Limit: 3}, {Name: "named", Resource: "named", Limit: 1},
	}}))
	var want, read [4]atomic.Uint64 // passed, blocked, completed, failed
	seconds := engine.Seconds(late.Virtual.Now())
	next := late.Virtual.Now()
	readUpTo := func(end clock.Instant) {
		for ; next < end; next = next.Add(time.Second) {
			for _, s := range seconds(next) {
				for i, n := range []uint64{s.Passed, s.Blocked, s.Completed, s.Failed} {
					read[i].Add(n)
				}
			}
		}
	}
	for round := range 6 {
		var calling sync.WaitGroup
		for caller := range 8 {
			random := rand.New(rand.NewPCG(uint64(round), uint64(caller)))
			calling.Go(func() { callAtRandom(engine, random, &want) })
		}
		for range 150 { // less than a minute
			late.lag.Store(int64(late.Virtual.Now()) % 3 * int64(2*time.Second))
			late.Advance(300*time.Millisecond + 1)
			runtime.Gosched()
			if round%2 == 0 {
				readUpTo(late.Virtual.Now().Add(-time.Second))
			}
		}
		calling.Wait()
		late.lag.Store(0)
		late.Advance(2 * time.Minute) // names that are called again find others forgotten
		if round%3 == 0 {
			next = late.Virtual.Now().Add(-10 * time.Second) // seconds are skipped
		}
	}
	readUpTo(late.Virtual.Now().Add(1))
	for i, what := range []string{"passed", "blocked", "completed", "failed"} {
		assert.Equal(t, want[i].Load(), read[i].Load(), what)
		assert.NotZero(t, want[i].Load(), what)
	}
	assert.Positive(t, engine.Snapshot().Forgotten.Blocked, "no resource was forgotten")
}

// callAtRandom makes calls of many resources, some of which overlap, and counts them.
func callAtRandom(engine *core.Engine, random *rand.Rand, counted *[4]atomic.Uint64) {
	var open []*core.Guard
	exit := func(n int) {
		for i := range open[:n] {
			if random.IntN(3) == 0 {
				open[i].MarkFailed()
				counted[3].Add(1)
			}
			open[i].Exit()
			counted[2].Add(1)
		}
		open = open[n:]
	}
	for range 200 {
		name := "named"
		if random.IntN(4) > 0 {
			name = fmt.Sprint("r", random.IntN(60))
		}
		guard, err := engine.Entry(context.Background(), name)
		if err != nil {
			counted[1].Add(1)
			exit(len(open))
			continue
		}
		counted[0].Add(1)
		open = append(open, &guard)
		exit(random.IntN(len(open) + 1))
	}
	exit(len(open))
}
