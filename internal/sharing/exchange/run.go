package exchange

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Send sends a batch in a goroutine of its own. When the batch has no answer in time, its
// context ends.
func (x *Exchange) Send(batch *Batch, senders *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(context.Background())
	x.Mu.Lock()
	batch.cancel = cancel
	batch.to.sending++
	x.Mu.Unlock()
	senders.Go(func() {
		defer cancel()
		err := batch.Send(ctx, x.config.Backend)
		batch.Arrived.Store(err == nil)
		x.Mu.Lock()
		batch.to.sending--
		x.Mu.Unlock()
		if now := x.clock.Now(); err != nil {
			x.Fail(now, batch, err)
		} else {
			x.Deliver(now, batch)
		}
	})
}

// awaitAnnouncement waits for the end of an announcement that [Member.Fleet] has made, so that it
// does not arrive after the instance has left.
func (x *Exchange) awaitAnnouncement() {
	x.Mu.Lock()
	announcing, ended := x.announcing, x.announcementEnded
	x.Mu.Unlock()
	if announcing {
		<-ended
	}
}

// sayLeave says that this instance ends, unless another one has its name.
func (x *Exchange) sayLeave(ctx context.Context) {
	x.Mu.Lock()
	isTaken := errors.Is(x.announceErr, fleet.ErrNameTaken)
	x.Mu.Unlock()
	if isTaken {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			x.log.Error("penstock: the backend of the fleet panicked", slog.Any("panic", r))
		}
	}()
	if err := x.config.Backend.Leave(ctx, x.config.Instance); err != nil {
		x.log.Warn("penstock: the backend of the fleet did not take the leave", slog.Any("error", err))
	}
}

// abandon ends the contexts of all batches under way.
func (x *Exchange) abandon() {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	for _, batch := range x.underWay {
		batch.cancel()
	}
}

// BeginRunning has the instance announce itself: somebody steps it from now on.
func (x *Exchange) BeginRunning(now clock.Instant) {
	x.running, x.hasLeft = true, false
	if x.connection.out {
		x.connection.probeAt = now
	}
	x.announceAt = now
	x.restIfUnused()
}

// EndRunning says that nobody steps it any more, and whether somebody did. What was not sent yet has no answer.
func (x *Exchange) EndRunning(now clock.Instant) bool {
	if !x.running {
		return false
	}
	x.running, x.hasLeft = false, true
	for _, batch := range x.batches {
		for _, by := range batch.askers {
			by.Unanswered(now, fleet.ErrUnavailable)
		}
	}
	return true
}

// Unsent returns a batch of all requests that were not sent yet.
func (x *Exchange) Unsent() *Batch {
	last := &Batch{}
	for _, batch := range x.batches {
		batch.to.end(batch)
		last.Requests = append(last.Requests, batch.Requests...)
		last.Replies = append(last.Replies, batch.Replies...)
	}
	x.batches = nil
	return last
}

// GoSilent has all limits decide by themselves.
func (x *Exchange) GoSilent(now clock.Instant) {
	if c := &x.connection; !c.out {
		c.out, c.silent, c.since = true, true, now
		x.limits.BeginOutages(now)
	}
}

// Await waits until something is due, or the context ends.
func (x *Exchange) Await(ctx context.Context) {
	timer := clock.TimerAt(x.clock, x.Due())
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-x.wake:
	case <-ctx.Done():
	}
}

// LeaveFleet waits for what is under way, sends what stop returns, such as what is handed back, and leaves the fleet,
// within the timeout.
func (x *Exchange) LeaveFleet(senders *sync.WaitGroup, stop func(now clock.Instant) *Batch) {
	timer := clock.TimerAt(x.clock, x.Now().Add(x.Timeout()))
	defer timer.Stop()
	if !endsBefore(timer, senders.Wait) {
		stop(x.Now())
		x.abandon()
		return
	}
	last := stop(x.Now())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	endsBefore(timer, func() {
		x.awaitAnnouncement()
		if last.Send(ctx, x.config.Backend) == nil {
			x.sayLeave(ctx)
		}
	})
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
