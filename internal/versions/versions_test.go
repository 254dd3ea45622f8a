package versions_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/versions"
)

func TestTheNewestVersionIsInForceAndTheLastOneEndsAll(t *testing.T) {
	t.Parallel()
	var v versions.Versions
	v.Begin(3)
	assert.False(t, v.Activate(3), "it is in force")
	assert.True(t, v.Adopt(5))
	assert.False(t, v.Retire(3), "a newer one is about to be in force")
	assert.True(t, v.Activate(5))
	assert.False(t, v.Activate(4))
	assert.EqualValues(t, 5, v.InForce())
	assert.False(t, v.Ended())
	assert.True(t, v.Retire(5))
	assert.True(t, v.Ended())
	assert.False(t, v.Retire(6), "once")
	assert.False(t, v.Activate(6))
	assert.False(t, v.Adopt(6))
}
