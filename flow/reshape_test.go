package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWindowOfUnchangedShapeKeepsNoLog(t *testing.T) {
	t.Parallel()
	g := newGate(t, reject(1000))
	for range 10 {
		g.pass(10)
		g.change(func(r *flow.Rule) { r.Limit++ })
		g.wait(50 * time.Millisecond)
	}
	assert.Zero(t, g.window.Logged())
}

// However long and however fine the windows, and whatever passes: a few hundred
// entries are kept, and they come back as they were but for a sixteenth of their age.
func TestPassLogIsBounded(t *testing.T) {
	t.Parallel()
	day := flow.Rule{Resource: "r", Limit: 1e9, Window: 24 * time.Hour, Buckets: 1000}
	g := newGate(t, day)
	toDay := func(r *flow.Rule) { *r = flow.Kind().WithDefaults(day) }
	toMoment := func(r *flow.Rule) {
		*r = flow.Kind().WithDefaults(flow.Rule{Resource: "r", Limit: 1e9, Window: 10 * time.Millisecond})
	}
	passed, most := 0, 0
	for range 4 {
		for range 300 {
			g.wait(20 * time.Second)
			passed += g.pass(1)
		}
		g.change(toMoment)
		for range 50_000 {
			passed += g.pass(1)
			g.wait(time.Millisecond)
			most = max(most, g.window.Logged())
		}
		g.change(toDay)
		passed += g.pass(1)
		assert.EqualValues(t, 1e9-passed, remainingOf(g), "none is forgotten")
	}
	assert.Positive(t, most)
	assert.Less(t, most, 1024)
	t.Logf("at most %d entries", most)
}

func remainingOf(g *gate) int64 {
	_, remaining, _ := g.window.Status(g.now)
	return remaining
}

// A window of up to sixteen parts comes back as it was, to the bucket.
func TestWindowIsRestoredWhenItsShapeIsChangedBack(t *testing.T) {
	t.Parallel()
	hour := func(r *flow.Rule) { r.Window, r.Buckets = time.Hour, 10 }
	changed, kept := newGate(t, flow.Rule{Resource: "r", Limit: 100, Window: time.Hour}), newGate(t, flow.Rule{Resource: "r", Limit: 100, Window: time.Hour})
	both := func(do func(g *gate)) { do(changed); do(kept) }
	for i := range 9 {
		both(func(g *gate) { assert.Equal(t, i+1, g.pass(i+1)) })
		changed.change(func(r *flow.Rule) { r.Window, r.Buckets = time.Minute, 6 })
		changed.take(1000) // more than it has room for: it adopts, and takes nothing
		both(func(g *gate) { g.wait(7 * time.Minute) })
		changed.change(hour)
		changed.take(1000)
	}
	for range 10 {
		assert.Equal(t, remainingOf(kept), remainingOf(changed))
		both(func(g *gate) { g.wait(6 * time.Minute) })
	}
}

// A fraction that was saved under another shape is none that this one would have saved.
func TestFractionIsNotSavedUpUnderAnotherShape(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 0.5, Window: time.Hour})
	passed := g.pass(5)
	for range 24 { // ten minutes each
		g.change(func(r *flow.Rule) { r.Window = time.Second })
		g.take(1000)
		g.wait(3 * time.Minute)
		g.change(func(r *flow.Rule) { r.Window = time.Hour })
		g.wait(7 * time.Minute)
		passed += g.pass(5)
	}
	assert.InDelta(t, 2, passed, 1, "half a call an hour in four hours")
}

// What is given back after a change of shape, and before or after another, is not
// counted any more under any of them.
func TestGiveBackReachesWhatAnotherShapeHasCounted(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 5, Window: time.Hour})
	old, taken := g.compiled, g.now
	assert.Equal(t, 5, g.pass(9))
	g.change(func(r *flow.Rule) { r.Window = time.Minute })
	assert.Zero(t, g.pass(1))
	g.window.GiveBack(old, taken, 2)
	g.wait(2 * time.Minute)
	g.change(func(r *flow.Rule) { r.Window = time.Hour })
	assert.Equal(t, 2, g.pass(9))
	g.window.GiveBack(old, taken, 1)
	assert.Equal(t, 1, g.pass(9))
	g.wait(50 * time.Minute)
	assert.Zero(t, g.pass(9))
	g.wait(20 * time.Minute)
	assert.Equal(t, 5, g.pass(9))
}

// A saved token that was used long ago is in no window, however long that is now.
func TestSpentCarriedTokenThatLeftTheWindowDoesNotComeBack(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 0.5, Window: 10 * time.Millisecond})
	require.Equal(t, rule.Pass, g.take(1))
	g.wait(6*time.Minute - 1)
	g.change(func(r *flow.Rule) { r.Window = time.Hour })
	require.Equal(t, rule.Pass, g.take(1), "the token that was saved since")
	require.Equal(t, rule.Block, g.take(1))
	wait := g.window.RetryAfter(g.now, 1)
	assert.InDelta(t, 2*time.Hour, wait, float64(6*time.Minute), "one in two hours")
	g.wait(wait)
	assert.Equal(t, rule.Pass, g.take(1))
}

func TestCarriedTokenGivenBackUnderAnotherShapeIsSavedAgain(t *testing.T) {
	t.Parallel()
	g := newGate(t, flow.Rule{Resource: "r", Limit: 0.5, Window: time.Hour})
	require.Equal(t, 1, g.pass(9))
	g.wait(3 * time.Hour) // one and a half tokens
	spent, at := g.compiled, g.now
	require.Equal(t, 1, g.pass(9))
	g.wait(6*time.Minute - 1)
	g.change(func(r *flow.Rule) { r.Buckets = 60 })
	require.Zero(t, g.pass(9))
	g.window.GiveBack(spent, at, 1)
	g.wait(12 * time.Minute)
	assert.Equal(t, 1, g.pass(9))
	wait := g.window.RetryAfter(g.now, 1)
	g.wait(wait)
	assert.Equal(t, 1, g.pass(9), "after %v", wait)
}
