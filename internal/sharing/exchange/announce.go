package exchange

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// announceIfDue announces the instance once a second, and probes a backend that does not
// answer: by announcing it, and if the backend has several servers, by asking all of them.
func (x *Exchange) announceIfDue(now clock.Instant) {
	c := &x.connection
	if c.suspect != 0 && c.suspect.Add(c.timeout) <= now {
		x.lose(now, c.err)
	}
	announces, probes := x.announceDue() <= now, x.probeDue() <= now
	if c.out && (announces || probes) {
		c.probeWait = min(2*c.probeWait, MaxProbeWait)
		c.probeAt = now.Add(x.Jitter(c.probeWait))
	}
	if probes {
		x.probePartitions(now)
	}
	if announces {
		x.addBatch(now, x.announcement(now, false))
		x.restIfUnused()
	}
}

// announcement returns a batch that announces the instance. It is the only one until
// endAnnouncement.
func (x *Exchange) announcement(now clock.Instant, withInstances bool) *Batch {
	x.announcing = true
	x.announceAt = now.Add(AnnounceInterval)
	if x.announced++; x.announced <= 2 { // others begin at the same time
		x.announceAt = now.Add(x.Jitter(AnnounceInterval / 4))
	}
	uses, divides := x.limits.Announce(now)
	self := fleet.Instance{ID: x.config.Instance, Session: x.session, Limits: uses}
	return &Batch{Announce: &self, WithInstances: withInstances || divides, to: x.Partitions[0]}
}

// AnnounceBy has the instance announced at an instant, or before.
func (x *Exchange) AnnounceBy(at clock.Instant) { x.announceAt = min(x.announceAt, at) }

// endAnnouncement lets the next announcement be made.
func (x *Exchange) endAnnouncement() {
	x.announcing = false
	close(x.announcementEnded)
	x.announcementEnded = make(chan struct{})
}

// announceDue is when the instance is to be announced again: to say that it is alive, or to
// see whether the backend is.
func (x *Exchange) announceDue() clock.Instant {
	switch {
	case x.announceAt == Never, x.announcing, !x.MaySend(x.Partitions[0]): // never: there are no limits
		return Never
	case x.connection.out:
		return x.connection.probeAt
	case x.isSilent():
		return min(x.announceAt, x.overdue(x.underWay[0]))
	default:
		return x.announceAt
	}
}

// loseAnnouncement notes that an announcement has no answer. When several in a row have none,
// although the backend answers other requests, it counts as one that takes no announcements.
func (x *Exchange) loseAnnouncement(now clock.Instant, err error) {
	if x.unannounced++; x.unannounced >= MaxLost && !x.connection.out {
		x.takeFleet(now, fleet.Fleet{}, err)
		return
	}
	x.endAnnouncement()
}

// takeFleet takes the answer to an announcement. err is what the backend says instead.
func (x *Exchange) takeFleet(now clock.Instant, known fleet.Fleet, err error) {
	x.endAnnouncement()
	if err != nil && x.announceErr == nil {
		x.Log(slog.LevelError, "penstock: the backend of the fleet does not take announcements", slog.Any("error", err))
	}
	if err == nil && x.announceErr != nil {
		x.Log(slog.LevelInfo, "penstock: the backend of the fleet takes announcements again")
	}
	x.announceErr = err
	if err != nil {
		x.limits.Undivided(now)
		return
	}
	x.unannounced = 0
	if known.IsNew || x.counted == 0 || known.Count < x.counted {
		x.knownSince = now
	}
	// A store that has lost its state learns of the instances again, one by one.
	x.count, x.counted = max(1, known.Count, x.counted), known.Count
	x.announceAt = min(x.announceAt, x.limits.Divide(now, known))
}

// Fleet asks the backend for all instances and what they use; this announces the instance. Its
// error is that of the backend, or [fleet.ErrUnavailable] when the context ends or the timeout passes
// before, and after Run has ended, when the instance has left.
func (x *Exchange) Fleet(ctx context.Context) (fleet.Fleet, error) {
	if x.config.Backend == nil {
		return fleet.Fleet{}, fmt.Errorf("%w: there is no backend", fleet.ErrUnavailable)
	}
	timer := x.clock.NewTimer(x.config.Timeout)
	defer timer.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batch, err := x.announceAlone(ctx, timer)
	if err != nil {
		return fleet.Fleet{}, err
	}
	answered := make(chan error, 1)
	go func() { answered <- batch.Send(ctx, x.config.Backend) }()
	select {
	case err = <-answered:
	case <-timer.C():
		err = fmt.Errorf("%w within %v", fleet.ErrUnavailable, x.config.Timeout)
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", fleet.ErrUnavailable, ctx.Err())
	}
	x.Mu.Lock()
	defer x.Unlock(x.clock.Now())
	defer x.restIfUnused()
	if err != nil {
		x.endAnnouncement()
		return fleet.Fleet{}, err
	}
	x.takeFleet(x.clock.Now(), batch.Fleet, batch.announceErr)
	return batch.Fleet, batch.announceErr
}

// announceAlone returns an announcement when no other one is under way.
func (x *Exchange) announceAlone(ctx context.Context, timer clock.Timer) (*Batch, error) {
	for {
		x.Mu.Lock()
		if x.hasLeft {
			x.Mu.Unlock()
			return nil, fmt.Errorf("%w: the instance has left the fleet, its member does not run any more", fleet.ErrUnavailable)
		}
		if !x.announcing {
			defer x.Unlock(x.clock.Now())
			return x.announcement(x.clock.Now(), true), nil
		}
		ended := x.announcementEnded
		x.Mu.Unlock()
		select {
		case <-ended:
		case <-timer.C():
			return nil, fmt.Errorf("%w within %v", fleet.ErrUnavailable, x.config.Timeout)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", fleet.ErrUnavailable, ctx.Err())
		}
	}
}
