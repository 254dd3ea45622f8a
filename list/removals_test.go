package list_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
)

// limited returns a registry that lets half of the entries of a list go within a minute.
func limited(t *testing.T) (*list.Registry, *clock.Virtual) {
	t.Helper()
	c := clock.NewVirtual(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
	r := list.NewRegistry()
	r.LimitRemoval(0.5, time.Minute, c)
	return r, c
}

// ofLength returns a list of so many texts.
func ofLength(t *testing.T, n int) *list.List {
	t.Helper()
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprint(i)
	}
	return texts(t, entries...)
}

var first = list.Provider{Source: "a", Document: "1"}

// put puts a list of so many texts and returns how many entries are in force.
func put(t *testing.T, r *list.Registry, n int) int {
	t.Helper()
	r.Put("l", first, list.Version{List: ofLength(t, n)})
	return r.Get("l").Len()
}

func TestListThatShrinksTooMuchIsHeldBackUntilItIsConfirmed(t *testing.T) {
	r, _ := limited(t)
	require.Equal(t, 10, put(t, r, 10))
	assert.Equal(t, 10, put(t, r, 4))
	status, _ := r.StatusOf("l", first)
	assert.True(t, status.InForce)
	assert.Equal(t, 10, status.Entries)
	require.EqualError(t, status.HeldBack, `list: source "a": 6 of the 10 entries of list "l" would go at once, more than `+
		"the share of 0.5 that is allowed: the list in force stays; put them back or confirm")
	require.ErrorContains(t, r.Confirm(list.Provider{Source: "b"}), "nothing is held back")
	require.NoError(t, r.Confirm(list.Provider{Source: "a"}))
	assert.Equal(t, 4, r.Get("l").Len())
	require.ErrorContains(t, r.Confirm(list.Provider{Source: "a"}), "nothing is held back")
	assert.Equal(t, 4, put(t, r, 1), "a later change is held back again")
}

func TestListThatIsEmptiedOrGoneIsHeldBack(t *testing.T) {
	for name, change := range map[string]func(*list.Registry){
		"emptied": func(r *list.Registry) { r.Put("l", first, list.Version{List: new(list.List)}) },
		"gone":    func(r *list.Registry) { r.Withdraw("l", first) },
	} {
		t.Run(name, func(t *testing.T) {
			r, c := limited(t)
			put(t, r, 1)
			change(r)
			c.Advance(time.Hour)
			change(r)
			assert.Equal(t, 1, r.Get("l").Len(), "waiting for long confirms nothing")
			require.NoError(t, r.Confirm(first))
			if l := r.Get("l"); l != nil {
				assert.Zero(t, l.Len())
			}
		})
	}
}

func TestListThatIsRestoredIsNoLongerHeldBack(t *testing.T) {
	r, _ := limited(t)
	put(t, r, 10)
	r.Withdraw("l", first)
	assert.Equal(t, 9, put(t, r, 9))
	status, _ := r.StatusOf("l", first)
	assert.Nil(t, status.HeldBack)
	assert.Equal(t, 9, status.Entries)
}

func TestEntriesThatGoOneAfterTheOtherAreHeldBack(t *testing.T) {
	r, c := limited(t)
	put(t, r, 10)
	assert.Equal(t, 7, put(t, r, 7))
	c.Advance(59 * time.Second)
	assert.Equal(t, 7, put(t, r, 4))
	status, _ := r.StatusOf("l", first)
	require.ErrorContains(t, status.HeldBack, "6 of the 10 entries of list \"l\" would be gone within 1m0s")
	assert.Equal(t, 9, put(t, r, 9), "what adds entries passes")
	c.Advance(time.Second)
	assert.Equal(t, 5, put(t, r, 5))
	c.Advance(time.Minute)
	assert.Equal(t, 3, put(t, r, 3))
}

// However often a list shrinks, what is remembered is bounded, and no more goes.
func TestManySmallRemovalsAreCountedTogether(t *testing.T) {
	r, c := limited(t)
	put(t, r, 1000)
	for n := 999; n > 0; n-- {
		put(t, r, n)
		c.Advance(time.Millisecond)
	}
	assert.Equal(t, 500, r.Get("l").Len())
}

func TestAddressesThatBecomeTextsAreGone(t *testing.T) {
	r, _ := limited(t)
	var b list.Builder
	require.NoError(t, b.Add("10.0.0.0/8"))
	addresses, err := b.Build(t.Context())
	require.NoError(t, err)
	r.Put("l", first, list.Version{List: addresses})
	r.Put("l", first, list.Version{List: ofLength(t, 100)})
	assert.Same(t, addresses, r.Get("l"))
}

func TestListOfAnotherProviderThatIsAsLongMayTakeThePlace(t *testing.T) {
	r, _ := limited(t)
	put(t, r, 10)
	r.Withdraw("l", first)
	other := list.Provider{Source: "a", Document: "2"}
	assert.False(t, r.Put("l", other, list.Version{List: ofLength(t, 2)}))
	assert.Equal(t, 10, r.Get("l").Len())
	assert.True(t, r.Put("l", other, list.Version{List: ofLength(t, 8)}))
	require.Len(t, r.Status(), 1)
	assert.Equal(t, other, r.Status()[0].Provider)
}

func TestWhatTheCodeDoesIsNotHeldBack(t *testing.T) {
	r, _ := limited(t)
	r.Set("l", ofLength(t, 10))
	r.Set("l", ofLength(t, 1))
	assert.Equal(t, 1, r.Get("l").Len())
	r.Set("l", nil)
	assert.Nil(t, r.Get("l"))
	put(t, r, 10)
	r.Withdraw("l", first)
	r.Set("l", ofLength(t, 1))
	assert.Equal(t, 1, r.Get("l").Len())
	r.Set("l", nil)
	require.Nil(t, r.Get("l"), "the list that was held back has gone when another one took its place")
	assert.Empty(t, r.Status())
}

func TestStrictestLimitCounts(t *testing.T) {
	r, c := limited(t)
	r.LimitRemoval(0.1, 0, c)
	r.LimitRemoval(0.9, 0, c)
	r.LimitRemoval(0, 0, c)
	put(t, r, 10)
	assert.Equal(t, 10, put(t, r, 8))
	assert.Equal(t, 9, put(t, r, 9))
}

func TestChangesWakeThoseWhoWait(t *testing.T) {
	r, _ := limited(t)
	for _, change := range []func(){
		func() { put(t, r, 10) }, func() { put(t, r, 1) }, func() { require.NoError(t, r.Confirm(list.Provider{Source: "a"})) },
		func() { r.Set("l", ofLength(t, 1)) }, func() { r.Set("l", nil) },
	} {
		changed := r.Changed()
		change()
		select {
		case <-changed:
		default:
			require.Fail(t, "nobody was told")
		}
	}
}
