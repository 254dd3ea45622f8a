package fleet

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// announceIfDue announces the instance once a second, and probes a backend that does not
// answer: by announcing it, and if the backend has several servers, by asking all of them.
func (m *Member) announceIfDue(now clock.Instant) {
	c := &m.connection
	if c.suspect != 0 && c.suspect.Add(c.timeout) <= now {
		m.lose(now, c.err)
	}
	announces, probes := m.announceDue() <= now, m.probeDue() <= now
	if c.out && (announces || probes) {
		c.probeWait = min(2*c.probeWait, maxProbeWait)
		c.probeAt = now.Add(m.jitter(c.probeWait))
	}
	if probes {
		m.probePartitions(now)
	}
	if announces {
		m.addBatch(now, m.announcement(now, len(m.shares) > 0))
		m.restIfUnused()
	}
}

// announcement returns a batch that announces the instance. It is the only one until
// endAnnouncement.
func (m *Member) announcement(now clock.Instant, withInstances bool) *Batch {
	m.announcing = true
	m.announceAt = now.Add(AnnounceInterval)
	if m.announced++; m.announced <= 2 { // others begin at the same time
		m.announceAt = now.Add(m.jitter(AnnounceInterval / 4))
	}
	self := m.self(now)
	return &Batch{Announce: &self, WithInstances: withInstances, to: m.partitions[0]}
}

// endAnnouncement lets the next announcement be made.
func (m *Member) endAnnouncement() {
	m.announcing = false
	close(m.announcementEnded)
	m.announcementEnded = make(chan struct{})
}

// announceDue is when the instance is to be announced again: to say that it is alive, or to
// see whether the backend is.
func (m *Member) announceDue() clock.Instant {
	switch {
	case m.announceAt == never, m.announcing, !m.maySend(m.partitions[0]): // never: there are no limits
		return never
	case m.connection.out:
		return m.connection.probeAt
	case m.isSilent():
		return min(m.announceAt, m.overdue(m.underWay[0]))
	default:
		return m.announceAt
	}
}

// self is the instance as it announces itself.
func (m *Member) self(now clock.Instant) Instance {
	uses := m.usesOf(now)
	shared := make([]Use, 0, len(uses)+len(m.shares))
	for _, s := range m.shares {
		shared = append(shared, s.use(now))
	}
	uses = append(shared, uses...) // without being announced, a share has no part
	return Instance{ID: m.config.Instance, Session: m.session, Limits: slices.Clip(uses[:min(len(uses), MaxUses)])}
}

// usesOf returns what is used of the limits that are not shared by demand, those with the
// greatest demand first. Probes do not count it anew.
func (m *Member) usesOf(now clock.Instant) []Use {
	if m.uses != nil && now.Sub(m.usesAt) < AnnounceInterval/2 {
		return m.uses
	}
	uses := make([]Use, 0, len(m.groups))
	for _, b := range m.queue.budgets {
		uses = append(uses, b.usage(now))
	}
	for _, a := range m.askers {
		if a.group == nil {
			uses = append(uses, a.usage(now))
		}
	}
	for _, g := range m.groups {
		uses = append(uses, g.use(now))
	}
	for _, p := range m.places {
		uses = append(uses, p.usage())
	}
	uses = slices.DeleteFunc(uses, func(u Use) bool { return u.Demand == 0 && u.Passed == 0 })
	slices.SortFunc(uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Demand, a.Demand), cmp.Compare(a.Key, b.Key))
	})
	m.uses, m.usesAt = slices.Clone(uses[:min(len(uses), MaxUses)]), now
	return m.uses
}

// soon is after what time a member announces a change that other instances wait for.
const soon = 50 * time.Millisecond

// loseAnnouncement notes that an announcement has no answer. When several in a row have none,
// although the backend answers other requests, it counts as one that takes no announcements.
func (m *Member) loseAnnouncement(now clock.Instant, err error) {
	if m.unannounced++; m.unannounced >= maxLost && !m.connection.out {
		m.takeFleet(now, Fleet{}, err)
		return
	}
	m.endAnnouncement()
}

// takeFleet takes the answer to an announcement. err is what the backend says instead.
func (m *Member) takeFleet(now clock.Instant, fleet Fleet, err error) {
	m.endAnnouncement()
	if err != nil && m.announceErr == nil {
		m.logLater(slog.LevelError, "penstock: the backend of the fleet does not take announcements", slog.Any("error", err))
	}
	if err == nil && m.announceErr != nil {
		m.logLater(slog.LevelInfo, "penstock: the backend of the fleet takes announcements again")
	}
	m.announceErr = err
	if err != nil {
		for _, s := range m.shares {
			s.lost(now)
		}
		return
	}
	m.unannounced = 0
	if fleet.IsNew || m.counted == 0 || fleet.Count < m.counted {
		m.knownSince = now
	}
	// A store that has lost its state learns of the instances again, one by one.
	m.count, m.counted = max(1, fleet.Count, m.counted), fleet.Count
	for _, s := range m.shares {
		m.announceAt = min(m.announceAt, now.Add(s.divide(now, m.config.Instance, fleet)))
	}
}

// addShare announces a share from now on, and has the backend tell what all instances have
// announced.
func (m *Member) addShare(s *Share, now clock.Instant) {
	m.mu.Lock()
	defer m.unlock(now)
	m.shares = append(m.shares, s)
	if len(m.shares) > MaxUses {
		s.mu.Lock()
		err := s.refuseUnannounced()
		s.mu.Unlock()
		m.logLater(slog.LevelError, "penstock: a limit is not shared by the fleet", slog.Any("error", err))
	}
	m.announceAt = now
	switch {
	case m.connection.out:
		s.lost(now)
	case m.counted > 0:
		s.begin(now, m.knownSince, m.count)
	}
}

// removeShare ends that. The other instances learn of it at once.
func (m *Member) removeShare(s *Share, now clock.Instant) {
	m.mu.Lock()
	defer m.unlock(now)
	m.shares = slices.DeleteFunc(m.shares, func(other *Share) bool { return other == s })
	m.announceAt = min(m.announceAt, now)
}
