package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
)

// The server and the model know the same instances, whatever the clock does.
func TestInstancesAreThoseThatTheModelKnows(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	check := func(wantCount int, id string, uses ...fleet.Use) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		self := fleet.Instance{ID: id, Limits: uses}
		got, err := p.store.Announce(ctx, self, true)
		require.NoError(t, err)
		want, err := p.model.Announce(ctx, self, true)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, wantCount, got.Count)
	}
	check(1, "b", fleet.Use{Key: "flow/a", Demand: 10, Passed: .25})
	check(1, "b")
	p.advance(2*time.Second, false)
	check(2, "a", fleet.Use{Key: "flow/b"}, fleet.Use{Key: "flow/a", Demand: 1e9})
	p.advance(3*time.Second-time.Microsecond, false)
	check(3, "c")
	p.advance(time.Microsecond, false)
	check(2, "c") // b said so 5 s ago
	p.advance(-time.Hour, true)
	check(2, "a", fleet.Use{Key: "flow/b"})
	p.advance(fleet.AnnounceLife, false)
	check(1, "d") // the clock has jumped back, a and c are gone all the same
	require.NoError(t, p.store.Leave(t.Context(), "d"))
	require.NoError(t, p.model.Leave(t.Context(), "d"))
	check(1, "e")
	p.server.FlushAll()
	p.model.Flush()
	check(1, "b")
	_, err := p.store.Announce(t.Context(), fleet.Instance{}, false)
	assert.ErrorContains(t, err, "needs an ID")
}

func TestInstanceAnnouncesNoMoreThanTheMostUses(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	var uses []fleet.Use
	for i := range 2 * fleet.MaxUses {
		uses = append(uses, fleet.Use{Key: fmt.Sprint("flow/", i)})
	}
	known, err := p.store.Announce(t.Context(), fleet.Instance{ID: "a", Limits: uses}, true)
	require.NoError(t, err)
	assert.Equal(t, uses[:fleet.MaxUses], known.Instances[0].Limits)
}

// A name is that of the session that announced it first, until it leaves or has not announced
// itself for long enough, whatever the clock does.
func TestNameOfAnInstanceIsThatOfOneSession(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.reset()
	announce := func(session string) (taken bool) {
		t.Helper()
		self := fleet.Instance{ID: "a", Session: session, Limits: []fleet.Use{{Key: "flow/" + session, Demand: 1}}}
		got, err := p.store.Announce(t.Context(), self, true)
		want, wantErr := p.model.Announce(t.Context(), self, true)
		assert.Equal(t, want, got)
		if wantErr == nil {
			require.NoError(t, err)
			assert.Equal(t, []fleet.Instance{{ID: "a", Limits: self.Limits}}, got.Instances)
			return false
		}
		require.ErrorIs(t, wantErr, fleet.ErrNameTaken)
		require.ErrorIs(t, err, fleet.ErrNameTaken)
		require.NotErrorIs(t, err, fleet.ErrUnavailable)
		return true
	}
	assert.False(t, announce("one"))
	assert.True(t, announce("two"))
	p.advance(fleet.AnnounceLife-time.Microsecond, false)
	assert.True(t, announce("two"), "being refused keeps no name")
	p.advance(time.Microsecond, false)
	assert.False(t, announce("two"))
	assert.True(t, announce("one"))
	p.advance(-time.Hour, true)
	assert.True(t, announce("one"))
	assert.False(t, announce("two"))
	p.advance(time.Hour, true)
	assert.False(t, announce("one"), "nobody is known")
	assert.True(t, announce("two"))
	require.NoError(t, p.store.Leave(t.Context(), "a"))
	require.NoError(t, p.model.Leave(t.Context(), "a"))
	assert.False(t, announce("two"))
}
