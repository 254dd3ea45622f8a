package sharing_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/sharing/share"
)

// startMembers runs members of one store until the test ends.
func startMembers(t *testing.T, backend fleet.Backend, n int) (members []*sharing.Member) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range n {
		m := sharing.NewMember(fleet.Config{Backend: backend, Instance: fmt.Sprint(i)}, clock.System(), slog.New(slog.DiscardHandler), uint64(i))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			m.Run(ctx)
		}()
		t.Cleanup(func() { <-ended })
		members = append(members, m)
	}
	t.Cleanup(cancel) // before it is waited for
	return members
}

func TestMembersShareByDemand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(clock.System())
		c := clock.System()
		terms := fleet.Terms{Key: "flow/partner", Limit: 1000, Window: time.Second, Buckets: 10}
		var shares []*share.Share
		members := startMembers(t, store, 4)
		for _, m := range members {
			shares = append(shares, m.NewShare(terms, fleet.OutageLast, c.Now()))
		}
		time.Sleep(3 * time.Second)
		for _, s := range shares {
			assert.InDelta(t, 250, s.Limit(), 1e-3)
		}
		// One has much demand, one has little.
		for range 60 {
			shares[0].Count(c.Now(), 100, true)
			shares[1].Count(c.Now(), 5, true)
			time.Sleep(100 * time.Millisecond)
		}
		assert.InDelta(t, 919, shares[0].Limit(), 30)
		sum := 0.0
		for _, s := range shares {
			sum += s.Limit()
		}
		assert.LessOrEqual(t, sum, 1000.0+1e-6)
		known, err := members[3].Fleet(t.Context())
		require.NoError(t, err)
		require.Len(t, known.Instances, 4)
		require.Len(t, known.Instances[0].Limits, 1)
		assert.InDelta(t, 1000, known.Instances[0].Limits[0].Demand, 150)
		assert.InDelta(t, shares[0].Limit()/1000, known.Instances[0].Limits[0].Reserved, .25)

		status := members[0].Status(c.Now())
		require.Len(t, status.Limits, 1)
		assert.Equal(t, fleet.ModeShare, status.Limits[0].Mode)
		assert.InDelta(t, shares[0].Limit(), status.Limits[0].Granted, 1e-6)

		shares[0].Release(c.Now())
		time.Sleep(4 * time.Second)
		assert.Greater(t, shares[1].Limit(), 200.0)
		assert.Empty(t, members[0].Status(c.Now()).Limits)
	})
}

// Two instances that were given one name never pass more than the limit together: the second one
// is refused, says so, and takes over when the first one has left.
func TestSecondInstanceOfANameIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, store := clock.System(), memory.New(clock.System())
		terms := fleet.Terms{Key: "flow/partner", Limit: 1000, Window: time.Second, Buckets: 10}
		type member struct {
			*sharing.Member
			share *share.Share
			lease *lease.Budget
			log   logText
			leave func()
		}
		join := func() *member {
			m := &member{}
			m.Member = sharing.NewMember(fleet.Config{Backend: store, Instance: "same"}, c, slog.New(slog.NewTextHandler(&m.log, nil)), 1)
			m.share = m.NewShare(terms, fleet.OutageLast, c.Now())
			leased := bucketOf(1000)
			m.lease = m.Budget(leased, fleet.ModeLease, fleet.OutageShare, c.Now())
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); m.Run(ctx) }()
			m.leave = func() { cancel(); <-ended }
			return m
		}
		const refused = "another instance has this name"
		first := join()
		time.Sleep(3 * time.Second)
		second := join()
		members := []*member{first, second}
		calls := func(d time.Duration, members ...*member) (leased int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
				for _, m := range members {
					m.share.Count(c.Now(), 1, true)
					if m.lease.Take(c.Now(), 1) {
						leased++
					}
				}
			}
			return leased
		}
		calls(5*time.Second, members...)
		assert.InDelta(t, 1000, first.share.Limit(), 1e-6, "all of it")
		assert.LessOrEqual(t, second.share.Limit(), 10.0, "a hundredth, as one that never reached the backend")
		assert.InDelta(t, 10_000, calls(10*time.Second, members...), 200, "a lease is counted by the store")
		require.ErrorIs(t, second.Status(c.Now()).Err, fleet.ErrNameTaken)
		assert.Equal(t, 1, strings.Count(second.log.String(), refused), second.log.String())
		require.NoError(t, first.Status(c.Now()).Err)
		assert.NotContains(t, first.log.String(), refused)

		third := join() // it leaves without taking the name away
		time.Sleep(2 * time.Second)
		third.leave()
		assert.Equal(t, 1, first.Status(c.Now()).Instances)
		assert.InDelta(t, 1000, first.share.Limit(), 1e-6)
		require.ErrorIs(t, second.Status(c.Now()).Err, fleet.ErrNameTaken)

		first.leave()
		calls(5*time.Second, second)
		assert.InDelta(t, 1000, second.share.Limit(), 1e-6)
		require.NoError(t, second.Status(c.Now()).Err)
		assert.Contains(t, second.log.String(), "takes announcements again")
		second.leave()
	})
}

func TestInstanceThatHasNeverReachedTheBackendHasTheShareThatIsExpected(t *testing.T) {
	t.Parallel()
	for onOutage, limits := range map[fleet.OnOutage][2]float64{ // with 8 instances expected, and when nobody says how many
		fleet.OutageLast: {125, 10}, fleet.OutageShare: {125, 10}, fleet.OutageClosed: {0, 0},
	} {
		for i, expected := range []int{8, 0} {
			synctest.Test(t, func(t *testing.T) {
				c := clock.System()
				store := &refusing{Store: memory.New(c), down: true}
				config := fleet.Config{Backend: store, Instance: "a", Instances: expected}
				m := sharing.NewMember(config, c, slog.New(slog.DiscardHandler), 1)
				s := m.Share(fleet.Terms{Key: "flow/partner", Limit: 1000, Window: time.Second, Buckets: 10}, onOutage, c.Now())
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); m.Run(ctx) }()
				defer func() { cancel(); <-ended }()
				time.Sleep(3 * time.Second)
				assert.InDelta(t, limits[i], s.Limit(), 1e-6, "%s, %d instances expected", onOutage, expected)
			})
		}
	}
}
