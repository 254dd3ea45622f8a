package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

func ExampleNew() {
	limiter, err := isolation.New(isolation.Rule{Limit: 1, MaxWait: time.Second})
	if err != nil {
		fmt.Println(err)
	}
	err = limiter.Do(context.Background(), func(context.Context) error {
		_, err := limiter.Try()
		fmt.Println(err)
		return nil
	})
	fmt.Println(err)
	// Output:
	// penstock: refused by isolation "isolation" (overloaded)
	// <nil>
}

func TestStandaloneLimiterTellsAllMistakes(t *testing.T) {
	_, err := isolation.New(isolation.Rule{Limit: -1, Match: "*", Origin: "a", MaxQueue: -3})
	require.ErrorContains(t, err, `isolation "isolation": match needs an engine: remove it`)
	require.ErrorContains(t, err, "origin needs an engine")
	require.ErrorContains(t, err, "limit is -1")
	require.ErrorContains(t, err, "maxQueue has no effect")
}

func TestStandaloneLimiterIsExact(t *testing.T) {
	l, err := isolation.New(isolation.Rule{Limit: 7, MaxWait: time.Minute})
	require.NoError(t, err)
	var now, most, ended atomic.Int64
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for range 200 {
				assert.NoError(t, l.Do(t.Context(), func(context.Context) error {
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					now.Add(-1)
					ended.Add(1)
					return nil
				}))
			}
		})
	}
	callers.Wait()
	assert.LessOrEqual(t, most.Load(), int64(7))
	assert.EqualValues(t, 32*200, ended.Load())
	var places []isolation.Place
	for range 7 {
		place, err := l.Try()
		require.NoError(t, err, "all places are free again")
		places = append(places, place)
	}
	_, err = l.Try()
	require.ErrorIs(t, err, rule.ErrRefused)
	places[0].Release()
	places[0].Release()
	_, err = l.Try()
	require.NoError(t, err)
	_, err = l.Try()
	require.Error(t, err, "the second Release frees nothing")
}

func TestStandaloneLimiterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := isolation.New(isolation.Rule{Limit: 1, MaxWait: time.Second, MaxQueue: 10})
		require.NoError(t, err)
		first, err := l.Wait(t.Context())
		require.NoError(t, err)
		begin := time.Now()
		time.AfterFunc(400*time.Millisecond, first.Release)
		second, err := l.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 400*time.Millisecond, time.Since(begin))
		_, err = l.Wait(t.Context())
		require.ErrorIs(t, err, rule.ErrRefused)
		assert.Equal(t, 1400*time.Millisecond, time.Since(begin), "maxWait")

		ended, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err = l.Wait(ended)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.Wait(ended)
		require.ErrorIs(t, err, context.Canceled)
		second.Release()
		third, err := l.Wait(t.Context())
		require.NoError(t, err, "who has left the queue keeps no place")
		third.Release()
	})
}

func TestStandaloneDoFreesThePlaceOfAPanic(t *testing.T) {
	l, err := isolation.New(isolation.Rule{Limit: 1})
	require.NoError(t, err)
	for range 3 {
		assert.Panics(t, func() { _ = l.Do(t.Context(), func(context.Context) error { panic("mine") }) })
	}
	mine := errors.New("mine")
	assert.Equal(t, mine, l.Do(t.Context(), func(context.Context) error { return mine }))
}

func TestStandaloneLimiterAllocatesNothing(t *testing.T) {
	l, err := isolation.New(isolation.Rule{Limit: 1})
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		place, _ := l.Try()
		_, _ = l.Try()
		place.Release()
	}))
}

func TestStandaloneLimiterKeepsTimeByTheClockThatItIsGiven(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l, err := isolation.New(isolation.Rule{Limit: 1, MaxWait: time.Second}, isolation.Options{Clock: c})
	require.NoError(t, err)
	place, err := l.Try()
	require.NoError(t, err)
	assert.InDelta(t, 1, l.Status().Gauges[0], 0, "calls under way")
	place.Release()
	assert.Zero(t, l.Status().Gauges[0])
}
