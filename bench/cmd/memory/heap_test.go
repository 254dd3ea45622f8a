package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// hoard is a framework that keeps a kilobyte of every call.
type hoard struct {
	peer.Guards
	kept map[string][]byte
}

func (h hoard) Call(resource string) bool {
	h.kept[resource] = make([]byte, 1024)
	return true
}

func TestMeasureFindsWhatIsKept(t *testing.T) {
	framework := peer.Framework{New: func(peer.Settings) peer.Guards { return hoard{kept: map[string][]byte{}} }}
	cost, err := measure(framework, calledOnce, "hoard", 1000)
	require.NoError(t, err)
	assert.InDelta(t, 1000*1100, cost.bytes, 1000*100, "a kilobyte, the name and its place in the map")
	assert.InDelta(t, 2000, cost.objects, 200)
}

// stopwatch is a framework that records when resources are entered and left.
type stopwatch struct {
	peer.Guards
	clock clock.Clock
	took  map[string][]time.Duration
}

func (s stopwatch) Enter(resource string) (func(), error) {
	entered := s.clock.Now()
	return func() { s.took[resource] = append(s.took[resource], s.clock.Now().Sub(entered)) }, nil
}

func TestActiveResourcesAnswerInAllTimesForAMinute(t *testing.T) {
	virtual := clock.NewVirtual(time.Unix(1_800_000_000, 0))
	guards := stopwatch{clock: virtual, took: map[string][]time.Duration{}}
	require.NoError(t, active(guards, virtual, []string{"a", "b"}))
	assert.Equal(t, time.Unix(1_800_000_060, 0).UTC(), virtual.Now().Time())
	for _, resource := range []string{"a", "b"} {
		took := guards.took[resource]
		assert.Len(t, took, 60)
		for shift := range 10 {
			assert.Contains(t, took, time.Millisecond<<shift)
		}
	}
}
