package leasedplaces_test

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
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/leasedplaces"
)

// callsOf is a limiter with calls that use places.
type callsOf places.Use

func (c *callsOf) LockPlaces(clock.Instant) places.Use { return places.Use(*c) }
func (c *callsOf) UnlockPlaces(clock.Instant) func()   { return nil }

// placesInOutages is an instance with places of a limit, whose batches may be lost.
type placesInOutages struct {
	t      *testing.T
	clock  *clock.Virtual
	store  *memory.Store
	member *sharing.Member
	places *leasedplaces.Places
	claims int
}

func newPlacesInOutages(t *testing.T) *placesInOutages {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	store := memory.New(c)
	m := sharing.NewMember(fleet.Config{Manual: true, Instance: "one", Backend: store}, c, slog.New(slog.DiscardHandler), 1)
	p := m.Places("isolation/a", 4, false, fleet.OutageLast, &callsOf{InUse: 1, Waiting: 1}, c.Now())
	p.Start(c.Now())
	o := &placesInOutages{t: t, clock: c, store: store, member: m, places: p}
	o.run(time.Second, func(*exchange.Batch) bool { return false })
	require.False(t, o.isOutage())
	return o
}

// run lets some time pass, in which the batches are lost that isLost says.
func (o *placesInOutages) run(d time.Duration, isLost func(*exchange.Batch) bool) {
	for range d / time.Millisecond {
		for _, batch := range o.member.Step(o.clock.Now()) {
			if len(batch.Requests) > 0 {
				o.claims++
			}
			if !isLost(batch) {
				require.NoError(o.t, batch.Send(o.t.Context(), o.store))
				o.member.Deliver(o.clock.Now(), batch)
			}
		}
		o.clock.Advance(time.Millisecond)
	}
}

func (o *placesInOutages) isOutage() bool { return o.places.Holder().Outage() != places.Connected }

// Places are claimed again after an outage also if the first claim after it is lost alone, while the store
// answers everything else.
func TestPlacesAreClaimedAgainAlthoughTheFirstClaimAfterAnOutageIsLost(t *testing.T) {
	t.Parallel()
	o := newPlacesInOutages(t)
	o.run(time.Second, func(*exchange.Batch) bool { return true })
	require.True(t, o.isOutage())
	o.claims = 0
	o.run(time.Second, func(b *exchange.Batch) bool { return len(b.Requests) > 0 && o.claims == 1 })
	assert.Greater(t, o.claims, 1)
	assert.False(t, o.isOutage())
}

// The store does not answer for one limit, and then not at all: the limit is claimed again after that, too.
func TestPlacesAreClaimedAgainAfterAnOutageWithinAnOutage(t *testing.T) {
	t.Parallel()
	o := newPlacesInOutages(t)
	o.run(2*time.Second, func(b *exchange.Batch) bool { return len(b.Requests) > 0 })
	require.True(t, o.isOutage())
	require.Equal(t, 1, o.member.Status(o.clock.Now()).Refusing)
	o.run(2*time.Second, func(*exchange.Batch) bool { return true })
	require.True(t, o.isOutage())
	o.run(time.Second, func(*exchange.Batch) bool { return false })
	assert.False(t, o.isOutage())
	assert.Zero(t, o.member.Status(o.clock.Now()).Refusing)
}

// A call that wakes places is held up in the midst of it. No other call does it too meanwhile, or the places would
// be in the list of woken ones twice, through which the member would go for ever.
func TestPlacesAreWokenByOneCallAtATime(t *testing.T) {
	t.Parallel()
	o := newPlacesInOutages(t)
	require.True(t, o.places.BeginWake())
	o.run(time.Second, func(*exchange.Batch) bool { return false }) // they are looked at meanwhile
	require.False(t, o.places.BeginWake())
	o.places.EndWake(o.clock.Now())
	o.run(time.Second, func(*exchange.Batch) bool { return false })
	assert.True(t, o.places.BeginWake())
}
