package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func ExampleNew() {
	b, err := breaker.New(breaker.Rule{Strategy: breaker.ErrorCount, Threshold: 2, OpenFor: time.Minute, MinCalls: 1})
	if err != nil {
		fmt.Println(err)
	}
	for range 3 {
		fmt.Println(b.Do(func() error { return errors.New("the callee is down") }))
	}
	fmt.Println(b.State())
	// Output:
	// the callee is down
	// the callee is down
	// penstock: refused by breaker "breaker" (unavailable)
	// open
}

var errDown = errors.New("down")

func TestStandaloneBreaker(t *testing.T) {
	c := clock.NewVirtual(time.Unix(1, 0))
	var changes []string
	b, err := breaker.New(breaker.Rule{Strategy: breaker.ErrorCount, Threshold: 2, OpenFor: 10 * time.Second, MinCalls: 1, Probes: 1},
		breaker.Options{Clock: c, OnChange: func(from, to string) { changes = append(changes, from+" "+to) }})
	require.NoError(t, err)
	fail := func() error { return b.Do(func() error { return errDown }) }
	require.NoError(t, b.Do(func() error { return nil }))
	require.Equal(t, context.Canceled, b.Do(func() error { return context.Canceled }), "not counted")
	require.Equal(t, errDown, fail())
	assert.Panics(t, func() { _ = b.Do(func() error { panic("counts as well") }) })
	require.ErrorIs(t, fail(), rule.ErrRefused)
	assert.Equal(t, breaker.Open, b.State())
	assert.Equal(t, 10*time.Second, b.RetryAfter())

	c.Advance(10 * time.Second)
	probe, err := b.Allow()
	require.NoError(t, err)
	assert.Equal(t, breaker.HalfOpen, b.State())
	_, err = b.Allow()
	require.ErrorIs(t, err, rule.ErrRefused, "one probe at a time")
	probe.Cancel()
	probe.Cancel()
	probe, err = b.Allow()
	require.NoError(t, err, "the place of the cancelled probe is free")
	probe.Done(nil)
	probe.Done(errDown)
	assert.Equal(t, breaker.Closed, b.State())
	assert.Equal(t, []string{"closed open", "open halfOpen", "halfOpen closed"}, changes)
}

func TestStandaloneBreakerIsForced(t *testing.T) {
	b, err := breaker.New(breaker.Rule{Strategy: breaker.ErrorRatio, Threshold: .5}, breaker.Options{IsFailure: func(error) bool { return false }})
	require.NoError(t, err)
	require.ErrorContains(t, b.Control("ajar"), `there is no state "ajar" to force: closed, open are`)
	require.NoError(t, b.Control(breaker.Open))
	_, err = b.Allow()
	require.ErrorIs(t, err, rule.ErrRefused)
	require.NoError(t, b.Control(""))
	for range 1000 {
		require.Equal(t, errDown, b.Do(func() error { return errDown }))
	}
	assert.Equal(t, breaker.Closed, b.State(), "no error is a failure")
}

func TestStandaloneBreakerTellsAllMistakes(t *testing.T) {
	_, err := breaker.New(breaker.Rule{Match: "*", Shadow: true, Strategy: "luck", Threshold: 7})
	require.ErrorContains(t, err, `breaker "breaker": match needs an engine: remove it`)
	require.ErrorContains(t, err, "shadow needs an engine")
	require.ErrorContains(t, err, "strategy is")
}

func TestStandaloneBreakerAllocatesNothing(t *testing.T) {
	b, err := breaker.New(breaker.Rule{Strategy: breaker.ErrorRatio, Threshold: .5})
	require.NoError(t, err)
	run := func() error { return nil }
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Do(run) }))
	require.NoError(t, b.Control(breaker.Open))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Do(run) }))
}
