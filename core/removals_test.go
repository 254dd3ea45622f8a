package core_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// guarded returns an engine that lets a source take out half of its rules at once,
// and what was rejected.
func guarded(t *testing.T, source *memory) (*core.Engine, *[]core.Rejection) {
	t.Helper()
	var rejected []core.Rejection
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: quiet, MaxRemoval: 0.5,
		Observer: core.Observer{Rejected: func(r core.Rejection) { rejected = append(rejected, r) }},
	})
	t.Cleanup(e.Close)
	require.NoError(t, e.Follow(t.Context(), source))
	return e, &rejected
}

func letters(revision int64, names ...string) (docs []core.Document) {
	for _, name := range names {
		docs = append(docs, doc(name, revision, text(name, revision)))
	}
	return docs
}

func TestAnEmptiedSourceIsHeldBackUntilItIsConfirmed(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	source.put(core.Change{Complete: true, Documents: letters(1, "a", "b", "c", "d")})
	require.EqualError(t, e.Confirm("memory"),
		`core: nothing of source "memory" is held back: there is nothing to confirm`)
	require.ErrorContains(t, e.Confirm("other"), `source "other" is not followed`)

	for range 2 { // said once
		source.put(core.Change{Complete: true, Revision: 2})
		assert.Len(t, active(e), 4)
		require.Len(t, *rejected, 1)
	}
	var heldBack *core.HeldBackError
	require.ErrorAs(t, (*rejected)[0].Err, &heldBack)
	assert.Equal(t, core.HeldBackError{Source: "memory", Removed: 4, Rules: 4, Most: 0.5}, *heldBack)
	assert.EqualError(t, heldBack, `core: source "memory": 4 of its 4 rules would go at once, more than the share of 0.5 `+
		`that is allowed: the rules in force stay; put them back or confirm`)
	status := e.Status().Sources[0]
	assert.Equal(t, heldBack, status.HeldBack)
	assert.True(t, status.Connected)
	require.Len(t, status.Documents, 4)
	for _, d := range status.Documents {
		assert.ErrorIs(t, d.Rejected, error(heldBack))
		assert.EqualValues(t, 1, d.Revision)
	}

	require.NoError(t, e.Confirm("memory"))
	assert.Empty(t, active(e))
	assert.Empty(t, e.Status().Sources[0].Documents)
	assert.Nil(t, e.Status().Sources[0].HeldBack)
	require.Error(t, e.Confirm("memory"), "it speaks of what was held")
}

func TestAsManyAsAreAllowedMayGo(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	source.put(core.Change{Complete: true, Documents: letters(1, "a", "b", "c", "d")})
	source.put(core.Change{Removed: []string{"a", "b"}})
	assert.Len(t, active(e), 2)
	assert.Empty(t, *rejected)
}

// A change is held back as a whole, with what it adds, and so are later ones, until
// most rules are there again.
func TestNothingOfASourceThatIsHeldBackIsHalfApplied(t *testing.T) {
	source, other := newMemory("memory"), newMemory("other")
	e, rejected := guarded(t, source)
	require.NoError(t, e.Follow(t.Context(), other))
	source.put(core.Change{Complete: true, Documents: letters(1, "a", "b", "c", "d")})
	source.put(core.Change{Removed: []string{"a", "b", "c"}, Documents: letters(2, "d", "e")})
	first := map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1}
	assert.Equal(t, first, active(e))

	other.put(core.Change{Complete: true, Documents: letters(7, "x")})
	first["x"] = 7
	assert.Equal(t, first, active(e), "other sources go on")
	assert.Len(t, *rejected, 1)

	source.put(core.Change{Documents: letters(3, "b")})
	assert.Equal(t, map[string]float64{"b": 3, "d": 2, "e": 2, "x": 7}, active(e), "two of four are gone: that is allowed")
	assert.Nil(t, e.Status().Sources[0].HeldBack)

	source.put(core.Change{Complete: true})
	assert.Len(t, *rejected, 2, "held back anew: told anew")
}

func TestAConfirmedRemovalIsApplied(t *testing.T) {
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	source.put(core.Change{Complete: true, Revision: 1, Documents: letters(1, "a", "b", "c", "d")})
	source.put(core.Change{Complete: true, Revision: 2, ConfirmedAt: 2})
	assert.Empty(t, active(e))
	assert.Empty(t, *rejected)

	source.put(core.Change{Complete: true, Revision: 3, ConfirmedAt: 2, Documents: letters(3, "a", "b")})
	for revision := range int64(2) {
		source.put(core.Change{Complete: true, Revision: 4 + revision, ConfirmedAt: 2})
		assert.Len(t, active(e), 2, "what was confirmed before is not what happens now")
	}
	source.put(core.Change{Revision: 6, ConfirmedAt: 6})
	assert.Empty(t, active(e), "confirmed afterwards")
}

// Rules that vanish within a document count, rules that move to another document
// of the source, or that cannot be read at present, do not.
func TestWhatCountsAsGone(t *testing.T) {
	for name, test := range map[string]struct {
		change core.Change
		gone   bool
	}{
		"emptied":    {core.Change{Documents: []core.Document{doc("d", 2, "flow: []")}}, true},
		"moved":      {core.Change{Removed: []string{"d"}, Documents: []core.Document{doc("e", 2, text("abcd", 2))}}, false},
		"broken":     {core.Change{Documents: []core.Document{doc("d", 2, "flow: [")}}, false},
		"unreadable": {core.Change{Documents: []core.Document{{Name: "d", Err: errors.New("too large")}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			source := newMemory("memory")
			e, _ := guarded(t, source)
			source.put(core.Change{Complete: true, Documents: []core.Document{doc("d", 1, text("abcd", 1))}})
			source.put(test.change)
			assert.Equal(t, test.gone, e.Status().Sources[0].HeldBack != nil)
			assert.Len(t, active(e), 4)
		})
	}
}

func TestManyDocumentsThatClash(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	source := newMemory("memory")
	e, rejected := guarded(t, source)
	var change core.Change
	for i := range 3000 {
		change.Documents = append(change.Documents,
			core.Document{Name: fmt.Sprintf("%04d", i), Data: fmt.Appendf(nil, "flow: [{resource: r%d, limit: %d}]", i/2, i)})
	}
	source.put(change)
	assert.Len(t, active(e), 1500)
	assert.Len(t, *rejected, 1500)
	var removed []string
	for i := range 3000 {
		if i%2 == 0 {
			removed = append(removed, fmt.Sprintf("%04d", i))
		}
	}
	source.put(core.Change{Removed: removed})
	assert.Len(t, active(e), 1500)
	for name, limit := range active(e) {
		require.Equal(t, 1, int(limit)%2, "rule %s is of a document that is gone", name)
	}
	assert.Len(t, *rejected, 1500)
}

// guardedClock is [guarded] with the clock of the engine.
func guardedClock(t *testing.T, source *memory, config core.Config) (*core.Engine, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(begin)
	config.Clock, config.Logger, config.MaxRemoval = c, quiet, 0.5
	e := core.New(config)
	t.Cleanup(e.Close)
	require.NoError(t, e.Follow(t.Context(), source))
	return e, c
}

func TestRulesThatAreDeletedOneAfterTheOtherAreHeldBack(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	source := newMemory("memory")
	e, c := guardedClock(t, source, core.Config{})
	source.put(core.Change{Complete: true, Documents: letters(1, names...)})
	for _, name := range names {
		c.Advance(time.Second)
		source.put(core.Change{Removed: []string{name}})
	}
	require.Len(t, active(e), 5)
	back := e.Status().Sources[0].HeldBack
	require.NotNil(t, back)
	assert.Equal(t, core.HeldBackError{Source: "memory", Removed: 10, Rules: 10, Most: 0.5, Within: time.Minute}, *back)
	assert.EqualError(t, back, `core: source "memory": 10 of its 10 rules would be gone within 1m0s, more than the share of 0.5 `+
		`that is allowed: the rules in force stay; put them back or confirm`)

	c.Advance(time.Hour)
	source.put(core.Change{Documents: letters(2, "z")})
	require.Len(t, active(e), 5, "time confirms nothing")
	require.NoError(t, e.Confirm("memory"))
	assert.Equal(t, map[string]float64{"z": 2}, active(e))
}

func TestRulesThatAreDeletedSlowlyGo(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for name, test := range map[string]struct {
		config core.Config
		step   time.Duration
		left   int
	}{
		"one in half a minute": {core.Config{}, 30 * time.Second, 2},
		"another window":       {core.Config{RemovalWindow: 10 * time.Second}, 5 * time.Second, 2},
		"each by itself":       {core.Config{RemovalWindow: -1}, 0, 1},
		"at once":              {core.Config{}, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			source := newMemory("memory")
			e, c := guardedClock(t, source, test.config)
			source.put(core.Change{Complete: true, Documents: letters(1, names...)})
			for _, name := range names {
				c.Advance(test.step)
				source.put(core.Change{Removed: []string{name}})
			}
			assert.Len(t, active(e), test.left)
		})
	}
}

func TestRulesThatAreGivenAgainDoNotCountAsGone(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	source := newMemory("memory")
	e, c := guardedClock(t, source, core.Config{})
	source.put(core.Change{Complete: true, Documents: letters(1, names...)})
	for revision := range int64(20) {
		for _, name := range names {
			source.put(core.Change{Removed: []string{name}})
			c.Advance(time.Millisecond)
			source.put(core.Change{Documents: letters(2+revision, name)})
		}
	}
	require.Nil(t, e.Status().Sources[0].HeldBack)
	assert.Equal(t, map[string]float64{"a": 21, "b": 21, "c": 21, "d": 21}, active(e))

	source.put(core.Change{Removed: []string{"a", "b"}})
	source.put(core.Change{Removed: []string{"c"}})
	require.NotNil(t, e.Status().Sources[0].HeldBack)
	source.put(core.Change{Documents: letters(30, "c")})
	require.Nil(t, e.Status().Sources[0].HeldBack, "it is back")
	c.Advance(time.Minute)
	source.put(core.Change{Removed: []string{"c"}})
	assert.Equal(t, map[string]float64{"d": 21}, active(e))
}

func TestWhatWasConfirmedCountsNoLonger(t *testing.T) {
	source := newMemory("memory")
	e, _ := guardedClock(t, source, core.Config{})
	source.put(core.Change{Complete: true, Documents: letters(1, "a", "b", "c", "d", "e", "f", "g", "h")})
	source.put(core.Change{Removed: []string{"a", "b", "c", "d"}})
	source.put(core.Change{Removed: []string{"e", "f"}})
	require.Len(t, active(e), 4)
	require.NoError(t, e.Confirm("memory"))
	require.Len(t, active(e), 2)
	source.put(core.Change{Removed: []string{"g"}})
	assert.Len(t, active(e), 1)
	source.put(core.Change{Removed: []string{"h"}})
	assert.Len(t, active(e), 1)
	assert.NotNil(t, e.Status().Sources[0].HeldBack)
}
