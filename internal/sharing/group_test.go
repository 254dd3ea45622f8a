package sharing_test

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// groupScene is one member with a group of limits, on a virtual clock.
type groupScene struct {
	t       *testing.T
	clock   *clock.Virtual
	store   *memory.Store
	member  *sharing.Member
	group   *sharing.Group
	batches []*exchange.Batch // all that were sent
}

func newGroupScene(t *testing.T) *groupScene {
	c := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	s := &groupScene{t: t, clock: c, store: memory.New(c)}
	s.member = sharing.NewMember(fleet.Config{Manual: true, Instance: "a"}, c, slog.New(slog.DiscardHandler), 1)
	s.group = s.member.Group(termsOf("rule"), fleet.ModeLease, fleet.OutageLast, c.Now())
	s.run(time.Second)
	return s
}

func termsOf(key string) fleet.Terms {
	return fleet.Terms{Key: key, Limit: 10, Window: 10 * time.Second, Burst: 10}
}

// run lets the time pass; answers come at once.
func (s *groupScene) run(d time.Duration) {
	for end := s.clock.Now().Add(d); s.clock.Now() < end; {
		s.clock.Advance(time.Millisecond)
		for s.member.Due() <= s.clock.Now() {
			for _, batch := range s.member.Step(s.clock.Now()) {
				s.batches = append(s.batches, batch)
				require.NoError(s.t, batch.Send(s.t.Context(), s.store))
				s.member.Deliver(s.clock.Now(), batch)
			}
		}
	}
}

func (s *groupScene) budget(key string) *lease.Budget {
	return s.group.Budget(termsOf(key), fleet.OutageLast, s.clock.Now())
}

func TestBudgetIsForgottenOnlyWhenItIsAsNew(t *testing.T) {
	t.Parallel()
	s := newGroupScene(t)
	b := s.budget("value")
	assert.False(t, b.Forget(s.clock.Now()), "it was made just now")
	require.True(t, b.Take(s.clock.Now(), 1))
	assert.False(t, b.Forget(s.clock.Now()), "it owes a token")
	s.run(500 * time.Millisecond)
	assert.False(t, b.Forget(s.clock.Now()), "it passed a call of late")
	s.run(3 * time.Second)
	require.True(t, b.IsNew(s.clock.Now()))
	require.True(t, b.Take(s.clock.Now(), 1))
	assert.False(t, b.Forget(s.clock.Now()), "a call came")
	s.run(3 * time.Second)
	assert.True(t, b.Forget(s.clock.Now()))
	assert.True(t, b.IsReleased())
	assert.False(t, b.Take(s.clock.Now(), 1))
	assert.False(t, b.Forget(s.clock.Now()), "it was forgotten")
}

func TestRefusedBudgetIsNotForgottenWhileTheDenialHolds(t *testing.T) {
	t.Parallel()
	s := newGroupScene(t)
	b := s.budget("value")
	for range 3000 {
		b.Take(s.clock.Now(), 1)
		s.run(time.Millisecond)
	}
	s.run(time.Second)
	assert.False(t, b.Forget(s.clock.Now()))
	s.run(15 * time.Second)
	assert.True(t, b.Forget(s.clock.Now()))
}

func TestAskerIsForgottenOnlyWhenItIsAsNew(t *testing.T) {
	t.Parallel()
	s := newGroupScene(t)
	a := s.group.Asker(termsOf("value"), fleet.AskTokenBucket, fleet.OutageLast)
	passed := 0
	for range 20 {
		a.Ask(s.clock.Now(), 1, func(answer ask.Answer) {
			if answer.Allowed {
				passed++
			}
		})
		assert.False(t, a.Forget(s.clock.Now()), "a call waits, or a denial holds")
		s.run(10 * time.Millisecond)
	}
	assert.Equal(t, 10, passed)
	assert.Positive(t, a.Denied(s.clock.Now(), 1))
	s.run(2 * time.Second)
	assert.False(t, a.Forget(s.clock.Now()), "calls were refused since it was last looked at")
	s.run(2 * time.Second)
	assert.True(t, a.Forget(s.clock.Now()))
	var answer ask.Answer
	a.Ask(s.clock.Now(), 1, func(got ask.Answer) { answer = got })
	assert.Equal(t, ask.Answer{Released: true}, answer)
	_, state := a.Wait(s.clock.Now(), 1, func() {}).Poll(s.clock.Now())
	assert.Equal(t, exchange.Released, state)
}

func TestGroupIsAnnouncedAndShownInSum(t *testing.T) {
	t.Parallel()
	s := newGroupScene(t)
	budgets := make([]*lease.Budget, 200)
	for i := range budgets {
		budgets[i] = s.budget("value-" + strconv.Itoa(i))
	}
	for range 3000 { // each value has a call a second
		if ms := s.clock.Now().Time().UnixMilli() % 1000; ms < 200 {
			budgets[ms].Take(s.clock.Now(), 1)
		}
		s.run(time.Millisecond)
	}
	status := s.member.Status(s.clock.Now())
	require.Len(t, status.Limits, 1)
	assert.Equal(t, "rule", status.Limits[0].Key)
	assert.InDelta(t, 200, status.Limits[0].Demand, 100)
	assert.InDelta(t, 200, status.Limits[0].Passed, 100)
	for _, batch := range s.batches {
		if batch.Announce != nil {
			assert.Len(t, batch.Announce.Limits, min(1, len(batch.Announce.Limits)))
		}
	}
	s.group.Release()
	assert.Empty(t, s.member.Status(s.clock.Now()).Limits)
}

func TestGroupsOfBalancesSayThatTheyAre(t *testing.T) {
	t.Parallel()
	s := newGroupScene(t)
	s.budget("value")
	assert.False(t, s.member.Status(s.clock.Now()).Limits[0].IsBalance)
	s.group.Asker(termsOf("value"), fleet.AskBalance, fleet.OutageClosed)
	assert.True(t, s.member.Status(s.clock.Now()).Limits[0].IsBalance)
}

func TestBatchesOfGroupsAreSmallAndOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newGroupScene(t)
	other := s.member.Budget(termsOf("other"), fleet.ModeLease, fleet.OutageLast, s.clock.Now())
	for i := range 2000 {
		s.budget("value-"+strconv.Itoa(i)).Take(s.clock.Now(), 1)
	}
	other.Take(s.clock.Now(), 1)
	s.batches = nil
	s.run(20 * time.Millisecond)
	require.Greater(t, len(s.batches), 7)
	require.Len(t, s.batches[0].Requests, 1, "other limits come first")
	assert.Equal(t, "other", s.batches[0].Requests[0].Terms.Key)
	for _, batch := range s.batches[1:] {
		assert.LessOrEqual(t, len(batch.Requests), 256)
	}
}
