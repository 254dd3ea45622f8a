package sharing_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/places"
	"github.com/penstock-go/penstock/internal/sharing"
)

// callsOf is a limiter with calls that use places.
type callsOf places.Use

func (c *callsOf) LockPlaces(clock.Instant) places.Use { return places.Use(*c) }
func (c *callsOf) UnlockPlaces(clock.Instant) func()   { return nil }

// Places are claimed again after an outage also if the first claim after it is lost alone, while the store
// answers everything else.
func TestPlacesAreClaimedAgainAlthoughTheFirstClaimAfterAnOutageIsLost(t *testing.T) {
	t.Parallel()
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := memory.New(c)
	m := sharing.NewMember(fleet.Config{Manual: true, Instance: "one", Backend: store}, c, slog.New(slog.DiscardHandler), 1)
	p := m.Places("isolation/a", 4, false, fleet.OutageLast, &callsOf{InUse: 1, Waiting: 1}, c.Now())
	p.Start(c.Now())
	claims := 0
	run := func(d time.Duration, isLost func(*sharing.Batch) bool) {
		for range d / time.Millisecond {
			for _, batch := range m.Step(c.Now()) {
				if len(batch.Requests) > 0 {
					claims++
				}
				if !isLost(batch) {
					require.NoError(t, batch.Send(t.Context(), store))
					m.Deliver(c.Now(), batch)
				}
			}
			c.Advance(time.Millisecond)
		}
	}
	outage := func() bool { return p.Holder().Outage() != places.Connected }

	run(time.Second, func(*sharing.Batch) bool { return false })
	require.False(t, outage())
	run(time.Second, func(*sharing.Batch) bool { return true })
	require.True(t, outage())
	claims = 0
	run(time.Second, func(b *sharing.Batch) bool { return len(b.Requests) > 0 && claims == 1 })
	assert.Greater(t, claims, 1)
	assert.False(t, outage())
}
