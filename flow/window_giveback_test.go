package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

func TestWindowGiveBack(t *testing.T) {
	t.Parallel()
	t.Run("is room at once", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		assert.Equal(t, 5, g.pass(9))
		g.window.GiveBack(g.compiled, g.now, 2)
		assert.Equal(t, 2, g.pass(9))
	})
	t.Run("is room in a later bucket", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		taken := g.now
		assert.Equal(t, 5, g.pass(9))
		g.moveTo(500 * time.Millisecond)
		assert.Zero(t, g.pass(1))
		g.window.GiveBack(g.compiled, taken, 2)
		assert.Equal(t, 2, g.pass(9))
		g.moveTo(time.Second)
		assert.Equal(t, 3, g.pass(9), "the other two came half a second later")
	})
	t.Run("of what has left the window is nothing", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		taken := g.now
		assert.Equal(t, 5, g.pass(9))
		g.moveTo(time.Second)
		assert.Equal(t, 5, g.pass(9))
		g.window.GiveBack(g.compiled, taken, 5)
		assert.Zero(t, g.pass(1))
	})
	t.Run("works under a newer version", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(5))
		old, taken := g.compiled, g.now
		assert.Equal(t, 5, g.pass(9))
		g.change(func(r *flow.Rule) { r.Limit = 6 })
		assert.Equal(t, 1, g.pass(9))
		g.window.GiveBack(old, taken, 2)
		assert.Equal(t, 2, g.pass(9))
	})
	t.Run("of a saved token saves it again", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(0.5))
		taken := g.now
		assert.Equal(t, 1, g.pass(9))
		g.moveTo(300 * time.Millisecond)
		assert.Zero(t, g.pass(1))
		g.window.GiveBack(g.compiled, taken, 1)
		assert.Equal(t, 1, g.pass(9))
	})
	t.Run("of any token is room while a saved one is out", func(t *testing.T) {
		t.Parallel()
		g := newGate(t, reject(2.5))
		g.moveTo(2 * time.Second)
		taken := g.now
		assert.Equal(t, 2, g.pass(2))
		g.moveTo(2500 * time.Millisecond)
		assert.Equal(t, 1, g.pass(9), "the saved one")
		g.window.GiveBack(g.compiled, taken, 1)
		assert.Equal(t, 1, g.pass(9))
	})
}

// A token that was taken before a change of geometry may be given back in a
// later bucket than the one it was moved to.
func TestWindowGiveBackReachesChangedBuckets(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 5, Buckets: 1})
	old := g.compiled
	g.moveTo(200 * time.Millisecond)
	taken := g.now
	assert.Equal(t, 5, g.pass(9))
	g.moveTo(300 * time.Millisecond)
	g.change(func(r *flow.Rule) { r.Buckets = 10 })
	assert.Zero(t, g.pass(1))

	g.moveTo(950 * time.Millisecond)
	assert.Zero(t, g.pass(1))
	g.window.GiveBack(old, taken, 2)
	first := g.pass(9)
	assert.LessOrEqual(t, first, 2, "three are in the window")
	g.moveTo(1400 * time.Millisecond)
	assert.LessOrEqual(t, first+g.pass(9), 5, "the three have left")
}
