package places_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/places"
)

// A store that has lost the last of what it knew learns it from an instance that was told of it, as fencing
// numbers do not decrease: it grants nothing until all have told what they have.
func TestRegisterThatHasLostTheLastOfItsStateLearnsItAnew(t *testing.T) {
	t.Parallel()
	const second = 1_000_000
	var r places.Register
	claim := func(now int64, instance string, inUse, number int64) places.ValueGrant {
		return r.Claim(now, false, &places.ValueClaim{
			Instance: instance, Sequence: now, Value: "v", Limit: 3, InUse: inUse, Want: 1, Life: places.DefaultLife, Number: number,
		})
	}
	first := claim(10*second, "one", 0, 0)
	require.EqualValues(t, 1, first.Granted)

	lost := claim(20*second, "two", 0, 15*second)
	assert.Zero(t, lost.Granted, "it was granted something at 15 s, and others may have been, too")
	assert.NotEqual(t, first.Born, lost.Born, "all tell what they have")
	again := claim(20*second+1000, "three", 0, 16*second)
	assert.Zero(t, again.Granted)
	assert.Equal(t, lost.Born, again.Born, "all do so already")
	assert.EqualValues(t, 1, claim(20*second+places.DefaultLife.Microseconds(), "two", 0, lost.Number).Granted)
}
