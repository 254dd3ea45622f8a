package sharing

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Run steps the member until the context ends, and sends what is to be sent. It then hands
// back what was leased and leaves the fleet, within the timeout. One Run at a time; it may be
// called again. It returns when that is done, at the latest after the timeout, even if the
// backend hangs.
func (m *Member) Run(ctx context.Context) {
	if m.config.Manual || m.config.Backend == nil {
		<-ctx.Done()
		return
	}
	m.begin(m.clock.Now())
	var stopListening func()
	defer func() {
		if stopListening != nil {
			stopListening()
		}
	}()
	var senders sync.WaitGroup // of this Run: those of one before may still hang
	for ctx.Err() == nil {
		if stopListening == nil && m.hasPlaces() {
			stopListening = m.listen()
		}
		for _, batch := range m.Step(m.clock.Now()) {
			m.send(batch, &senders)
		}
		timer := clock.TimerAt(m.clock, m.Due())
		select {
		case <-timer.C():
		case <-m.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	m.leave(&senders)
}

// begin has the member announce itself.
func (m *Member) begin(now clock.Instant) {
	m.mu.Lock()
	defer m.unlock(now)
	m.running, m.hasLeft = true, false
	if m.connection.out {
		m.connection.probeAt = now
	}
	m.announceAt = now
	m.startPlaces(now)
	m.restIfUnused()
}

// send sends a batch in a goroutine of its own. When the batch has no answer in time, its
// context ends.
func (m *Member) send(batch *Batch, senders *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(context.Background())
	m.mu.Lock()
	batch.cancel = cancel
	batch.to.sending++
	m.mu.Unlock()
	senders.Go(func() {
		defer cancel()
		err := batch.Send(ctx, m.config.Backend)
		batch.arrived.Store(err == nil)
		m.mu.Lock()
		batch.to.sending--
		m.mu.Unlock()
		if now := m.clock.Now(); err != nil {
			m.Fail(now, batch, err)
		} else {
			m.Deliver(now, batch)
		}
	})
}

// leave waits for what is under way, hands back what is leased and leaves the fleet, within
// the timeout.
func (m *Member) leave(senders *sync.WaitGroup) {
	timer := clock.TimerAt(m.clock, m.clock.Now().Add(m.config.Timeout))
	defer timer.Stop()
	if !endsBefore(timer, senders.Wait) {
		m.stop(m.clock.Now())
		m.abandon()
		return
	}
	last := m.stop(m.clock.Now())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	endsBefore(timer, func() {
		m.awaitAnnouncement()
		if last.Send(ctx, m.config.Backend) == nil {
			m.leaveFleet(ctx)
		}
	})
}

// awaitAnnouncement waits for the end of an announcement that [Member.Fleet] has made, so that it
// does not arrive after the instance has left.
func (m *Member) awaitAnnouncement() {
	m.mu.Lock()
	announcing, ended := m.announcing, m.announcementEnded
	m.mu.Unlock()
	if announcing {
		<-ended
	}
}

// endsBefore calls f, and says whether it ends before the timer.
func endsBefore(timer clock.Timer, f func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	select {
	case <-ended:
		return true
	case <-timer.C():
		return false
	}
}

// leaveFleet says that this instance ends, unless another one has its name.
func (m *Member) leaveFleet(ctx context.Context) {
	m.mu.Lock()
	isTaken := errors.Is(m.announceErr, fleet.ErrNameTaken)
	m.mu.Unlock()
	if isTaken {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			m.log.Error("penstock: the backend of the fleet panicked", slog.Any("panic", r))
		}
	}()
	if err := m.config.Backend.Leave(ctx, m.config.Instance); err != nil {
		m.log.Warn("penstock: the backend of the fleet did not take the leave", slog.Any("error", err))
	}
}

// stop has all limits decide by themselves, and returns a batch that hands back what is
// leased and pays what is owed.
func (m *Member) stop(now clock.Instant) *Batch {
	m.mu.Lock()
	defer m.unlock(now)
	if !m.running {
		return &Batch{}
	}
	m.running, m.hasLeft = false, true
	for _, b := range m.budgets {
		m.handBackAll(now, b)
	}
	for _, p := range m.partitions {
		m.sendFlushes(now, p)
	}
	last := &Batch{}
	for _, batch := range m.batches {
		batch.to.end(batch)
		last.Requests = append(last.Requests, batch.Requests...)
		last.Replies = append(last.Replies, batch.Replies...)
		for _, by := range batch.askers {
			if r, ok := by.(*recharging); ok {
				r.unanswered(now, fleet.ErrUnavailable)
			}
		}
	}
	m.leavePlaces(now, last)
	m.leaveValues(now, last)
	m.batches = nil
	for _, p := range m.partitions {
		for len(p.asks) > 0 {
			p.nextAsk().unanswered(now, fleet.ErrUnavailable)
		}
	}
	if c := &m.connection; !c.out {
		c.out, c.silent, c.since = true, true, now
		m.beginOutages(now)
	}
	for _, b := range slices.Clone(m.budgets) {
		if b.released.Load() {
			m.removeBudget(b)
		} else {
			b.look(now)
		}
	}
	return last
}

// handBackAll requests that all that is leased is taken back, and pays what is owed. It waits
// for no answer: the member ends.
func (m *Member) handBackAll(now clock.Instant, b *Budget) {
	b.count(now)
	b.drop(now)
	if b.outage.Active {
		return
	}
	for b.owed > 0 || len(b.back) > 0 {
		request, p := b.pay(now, 0)
		m.request(now, request, p, b.group != nil)
		b.owedSent -= p.owed
		b.write(p.owed, b.end(now), false)
		b.remove(p)
	}
}

// abandon ends the contexts of all batches under way.
func (m *Member) abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, batch := range m.underWay {
		batch.cancel()
	}
}
