package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
)

// startMembers runs members of one store until the test ends.
func startMembers(t *testing.T, backend fleet.Backend, n int) (members []*fleet.Member) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range n {
		m := fleet.NewMember(fleet.Config{Backend: backend, Instance: fmt.Sprint(i)}, clock.System(), slog.New(slog.DiscardHandler), uint64(i))
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
		var shares []*fleet.Share
		members := startMembers(t, store, 4)
		for _, m := range members {
			shares = append(shares, m.Share(terms, fleet.OutageLast, c.Now()))
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
