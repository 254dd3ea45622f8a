package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// granting is a store that grants everything.
type granting struct{ fleet.Store }

func (granting) Exchange(_ context.Context, requests []fleet.Request, replies []fleet.Reply) {
	for i := range requests {
		replies[i] = fleet.Reply{Granted: requests[i].Want}
	}
}

func (granting) Announce(context.Context, fleet.Instance, bool) (fleet.Fleet, error) {
	return fleet.Fleet{Count: 1}, nil
}

// many is a member with many limits that is stepped by hand.
type many struct {
	*sharing.Member
	clock  *clock.Virtual
	limits []*lease.Budget
}

func newMany(limits int, onOutage ...fleet.OnOutage) *many {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	m := &many{clock: c, Member: sharing.NewMember(fleet.Config{Manual: true}, c, slog.New(slog.DiscardHandler), 1)}
	for i := range limits {
		terms := fleet.Terms{Key: fmt.Sprint("flow/", i), Limit: 100, Window: time.Second, Burst: 10, Buckets: 10}
		m.limits = append(m.limits, m.Budget(terms, fleet.ModeLease, onOutage[i%len(onOutage)], c.Now()))
	}
	return m
}

// run lets time pass. Batches are answered at once, or refused.
func (m *many) run(d time.Duration, err error) {
	for end := m.clock.Now().Add(d); m.clock.Now() < end; m.clock.Advance(time.Millisecond) {
		m.answer(m.steps(), err)
	}
}

// steps steps the member as long as it is due, and returns what it sends.
func (m *many) steps() (batches []*exchange.Batch) {
	for m.Due() <= m.clock.Now() {
		batches = append(batches, m.Step(m.clock.Now())...)
	}
	return batches
}

func (m *many) answer(batches []*exchange.Batch, err error) {
	for _, batch := range batches {
		if err == nil {
			err = batch.Send(context.Background(), granting{})
		}
		if err != nil {
			m.Fail(m.clock.Now(), batch, err)
		} else {
			m.Deliver(m.clock.Now(), batch)
		}
	}
}

// However many limits are called at once, no more requests are under way than a server can answer
// in time, and all are made in turn.
func TestLimitsThatAreCalledAtOnceAskInTurn(t *testing.T) {
	t.Parallel()
	m := newMany(3*exchange.MaxRequestsUnderWay, fleet.OutageLast)
	m.run(time.Second, nil)
	for _, b := range m.limits {
		b.Take(m.clock.Now(), 1)
	}
	m.clock.Advance(exchange.Tick)
	asked := map[string]bool{}
	for range 50 {
		batches := m.steps()
		requests := 0
		for _, batch := range batches {
			requests += len(batch.Requests)
			for i := range batch.Requests {
				asked[batch.Requests[i].Terms.Key] = true
			}
		}
		require.LessOrEqual(t, requests, exchange.MaxRequestsUnderWay)
		m.clock.Advance(exchange.Tick)
		m.answer(batches, nil)
	}
	assert.Len(t, asked, len(m.limits))
	assert.Zero(t, m.Partitions[0].Requests)
	assert.Zero(t, m.Partitions[0].UnderWay)
}

// A step looks at a bounded number of limits, so that answers do not wait for all of them.
func TestStepLooksAtABoundedNumberOfLimits(t *testing.T) {
	t.Parallel()
	m := newMany(3*lease.MaxLooks, fleet.OutageLast)
	m.clock.Advance(time.Second)
	for _, b := range m.limits {
		b.Refuse(m.clock.Now(), 1)
	}
	for range 3 {
		requests := 0
		for _, batch := range m.Step(m.clock.Now()) {
			requests += len(batch.Requests)
		}
		assert.Equal(t, lease.MaxLooks, requests)
	}
}

// An answer that is there, but not taken yet because the member is busy, is no outage.
func TestAnswerThatIsThereIsNotMissed(t *testing.T) {
	t.Parallel()
	for name, arrived := range map[string]bool{"there": true, "not there": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMany(1, fleet.OutageLast)
			m.run(time.Second, nil)
			m.limits[0].Refuse(m.clock.Now(), 5)
			m.clock.Advance(exchange.Tick)
			batches := m.steps()
			require.NotEmpty(t, batches)
			for _, batch := range batches {
				batch.Arrived.Store(arrived)
			}
			m.clock.Advance(2 * exchange.DefaultTimeout)
			later := m.Step(m.clock.Now())
			m.answer(batches, nil)
			m.answer(later, nil)
			assert.Equal(t, arrived, m.Status(m.clock.Now()).Outages == 0)
			assert.Equal(t, arrived, m.Status(m.clock.Now()).Lost == 0)
		})
	}
}

// A limit that nobody calls costs nothing when an outage begins or ends, and yet does as its
// onOutage says: from the first call on, and in its status.
func TestLimitThatIsNotCalledJoinsAnOutage(t *testing.T) {
	t.Parallel()
	m := newMany(4, fleet.OutageLast, fleet.OutageShare, fleet.OutageOpen, fleet.OutageClosed)
	all := func() (passed []bool) {
		for _, b := range m.limits {
			passed = append(passed, b.Take(m.clock.Now(), 1))
		}
		return passed
	}
	m.run(time.Second, nil)
	assert.Equal(t, []bool{true, true, true, true}, all())
	m.run(20*time.Second, nil)
	for i, b := range m.limits {
		assert.Equal(t, i < 2, b.IsAsleep(), "limit %d", i)
	}
	m.run(2*time.Second, fleet.ErrUnavailable) // announcements fail
	require.True(t, m.IsOut())
	assert.False(t, m.limits[0].InOutage(), "nobody has called it")
	assert.Equal(t, []bool{true, true, true, false}, all(), "a first call after a quiet time passes, unless all are closed")
	m.run(100*time.Millisecond, fleet.ErrUnavailable)
	for i, b := range m.limits {
		assert.True(t, b.InOutage(), "limit %d", i)
	}
	m.run(5*time.Second, nil)
	for _, limit := range m.Status(m.clock.Now()).Limits {
		assert.False(t, limit.Outage, limit.Key)
	}
	m.run(20*time.Second, nil)
	m.run(2*time.Second, fleet.ErrUnavailable)
	for _, limit := range m.Status(m.clock.Now()).Limits {
		assert.True(t, limit.Outage, limit.Key)
	}
}
