package sharing

import (
	"context"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// Run steps the member until the context ends, and sends what is to be sent. It then hands
// back what was leased and leaves the fleet, within the timeout. One Run at a time; it may be
// called again. It returns when that is done, at the latest after the timeout, even if the
// backend hangs.
func (m *Member) Run(ctx context.Context) {
	if m.IsManual() || m.Backend() == nil {
		<-ctx.Done()
		return
	}
	m.begin(m.Now())
	var stopListening func()
	defer func() {
		if stopListening != nil {
			stopListening()
		}
	}()
	var senders sync.WaitGroup // of this Run: those of one before may still hang
	for ctx.Err() == nil {
		if stopListening == nil && m.limits.places.Any() {
			stopListening = m.listen()
		}
		for _, batch := range m.Step(m.Now()) {
			m.Send(batch, &senders)
		}
		m.Await(ctx)
	}
	m.LeaveFleet(&senders, m.stop)
}

// begin has the member announce itself.
func (m *Member) begin(now clock.Instant) {
	m.Mu.Lock()
	defer m.Unlock(now)
	m.BeginRunning(now)
	m.limits.places.Restart(now)
	m.limits.values.BackIsUp(now)
}

// stop has all limits decide by themselves, and returns a batch that hands back what is
// leased and pays what is owed.
func (m *Member) stop(now clock.Instant) *exchange.Batch {
	m.Mu.Lock()
	defer m.Unlock(now)
	if !m.EndRunning(now) {
		return &exchange.Batch{}
	}
	l := m.limits
	l.budgets.HandBackAll(now)
	l.askers.HandBackAll(now)
	last := m.Unsent()
	l.places.Leave(now, last)
	l.values.Leave(now, last)
	l.askers.Stop(now)
	m.GoSilent(now)
	l.budgets.Stop(now)
	return last
}

// listen has the backend tell of places that are granted, if it can.
func (m *Member) listen() (stop func()) {
	if notifier, ok := m.Backend().(fleet.Notifier); ok {
		return notifier.Listen(m.ClaimID(), m.PlacesGranted)
	}
	return func() {}
}

// PlacesGranted says that the backend has granted places of a limit to this instance, of which it
// learns when it claims the next time: at once.
func (m *Member) PlacesGranted(key string) { m.limits.places.Granted(key) }

// Starting says that Run is about to be called: calls that ask before it has begun wait for
// it, rather than being decided on as in an outage.
func (m *Member) Starting(now clock.Instant) {
	if !m.IsManual() {
		m.begin(now)
	}
}
