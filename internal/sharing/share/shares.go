package share

import (
	"log/slog"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// Shares are those of one instance.
type Shares struct {
	*exchange.Exchange
	all []*Share // guarded by Mu
}

// add announces a share from now on, and has the backend tell what all instances have
// announced.
func (set *Shares) add(s *Share, now clock.Instant) {
	set.Mu.Lock()
	defer set.Unlock(now)
	set.all = append(set.all, s)
	if len(set.all) > fleet.MaxUses {
		s.mu.Lock()
		err := s.refuseUnannounced()
		s.mu.Unlock()
		set.Log(slog.LevelError, "penstock: a limit is not shared by the fleet", slog.Any("error", err))
	}
	set.Join(now)
	set.AnnounceBy(now)
	switch known, since := set.Known(); {
	case set.IsOut():
		s.lost(now)
	case known > 0:
		s.begin(now, since, known)
	}
}

// remove ends that. The other instances learn of it at once.
func (set *Shares) remove(s *Share, now clock.Instant) {
	set.Mu.Lock()
	defer set.Unlock(now)
	if i := slices.Index(set.all, s); i >= 0 {
		set.all = slices.Delete(set.all, i, i+1)
		set.Left()
	}
	set.AnnounceBy(now)
}

// Uses returns what the instance announces of them. It is called once for each announcement that is sent.
func (set *Shares) Uses(now clock.Instant) (uses []fleet.Use) {
	for _, s := range set.all {
		uses = append(uses, s.use(now))
	}
	return uses
}

// Lost has all go on without the backend, which does not answer announcements.
func (set *Shares) Lost(now clock.Instant) {
	for _, s := range set.all {
		s.lost(now)
	}
}

// Divide takes the answer to an announcement, and returns when to announce the instance again.
func (set *Shares) Divide(now clock.Instant, known fleet.Fleet) clock.Instant {
	at := exchange.Never
	for _, s := range set.all {
		at = min(at, now.Add(s.divide(now, set.Instance(), known)))
	}
	return at
}

// Status tells how the limits are.
func (set *Shares) Status(now clock.Instant) (all []fleet.LimitStatus) {
	for _, s := range set.all {
		all = append(all, s.Status(now))
	}
	return all
}
