package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimitComesBackAfterEachOfRandomLoadSteps(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	reports, err := runLoadSteps(t.Context(), rand.New(rand.NewPCG(1, 1)), 3*time.Minute)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(reports), 3)
	assert.Empty(t, checkLoadSteps(reports))
}

func TestLimitsThatRatchetOrOscillateAreFound(t *testing.T) {
	t.Parallel()
	steady := stepReport{limit: 10, values: 10, goodput: 1}
	with := func(change func(*stepReport)) []stepReport {
		changed := steady
		change(&changed)
		return []stepReport{steady, steady, changed}
	}
	assert.Empty(t, checkLoadSteps(with(func(r *stepReport) { r.limit = 11; r.off = 3; r.inARow = 3 })))
	assert.Len(t, checkLoadSteps(with(func(r *stepReport) { r.limit = 12 })), 1)
	assert.Len(t, checkLoadSteps(with(func(r *stepReport) { r.off, r.inARow = 4, 4 })), 1)
	assert.Len(t, checkLoadSteps(with(func(r *stepReport) { r.off, r.inARow = 5, 1 })), 1)
	assert.Len(t, checkLoadSteps(with(func(r *stepReport) { r.goodput = 0.8 })), 1)
}

func TestRandomStepsGoBelowAndAboveTheCapacityInTurn(t *testing.T) {
	t.Parallel()
	steps := randomSteps(rand.New(rand.NewPCG(1, 1)), 5*time.Minute)
	for i, s := range steps {
		assert.Equal(t, i%2 == 1, s.overloaded())
		assert.LessOrEqual(t, s.multiple, 10.0)
		if i > 0 {
			assert.Equal(t, steps[i-1].until, s.from)
		}
	}
	assert.Equal(t, 5*time.Minute, steps[len(steps)-1].until)
}
