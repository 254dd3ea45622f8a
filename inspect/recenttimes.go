package inspect

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

const (
	// recentSpan is the least time over which percentiles go of a resource that is shown every second,
	// and half of the greatest.
	recentSpan = 30 * time.Second

	// leastRecentSpan is the least time over which they go at first.
	leastRecentSpan = 5 * time.Second

	// maxRecentSpan is the age from which on nothing counts as recent.
	maxRecentSpan = 3 * recentSpan
)

// recentTimes knows of the resources that were shown of late what their response times were then, so
// that percentiles are those of the last minute: an engine has one distribution of each resource, of all
// calls since it knows it. It is safe for concurrent use.
type recentTimes struct {
	mu     sync.Mutex // guards what follows
	shown  map[core.ResourceID]*shownTimes
	sought clock.Instant // when resources that are not shown any more were last looked for
}

// shownTimes is what the response times of a resource were at two instants, of which the older one is at
// least recentSpan before the newer one, or 0 for none.
type shownTimes struct {
	older, newer     stat.Distribution
	olderAt, newerAt clock.Instant
	seenAt           clock.Instant
}

// of returns the distribution of the response times of late, and since when; 0 if the resource was not
// shown in the last minute or so: the times are then those of all calls.
func (r *recentTimes) of(view core.ResourceView) (stat.Distribution, clock.Instant) {
	now, present := view.At, view.ResponseTimes()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	s := r.shown[view.ID]
	if s == nil {
		if r.shown == nil {
			r.shown = make(map[core.ResourceID]*shownTimes)
		}
		r.shown[view.ID] = &shownTimes{newer: present, newerAt: now, seenAt: now}
		return present, 0
	}
	s.seenAt = now
	if now.Sub(s.newerAt) >= recentSpan {
		s.older, s.olderAt = s.newer, s.newerAt
		s.newer, s.newerAt = present, now
	}
	before, since := s.older, s.olderAt
	if since == 0 || now.Sub(since) > maxRecentSpan {
		before, since = s.newer, s.newerAt
	}
	if age := now.Sub(since); age < leastRecentSpan || age > maxRecentSpan {
		return present, 0
	}
	var recent stat.Distribution
	recent.Add(present, before)
	return recent, since
}

// forget forgets resources that were not shown for long, once in a while.
func (r *recentTimes) forget(now clock.Instant) {
	if now.Sub(r.sought) < recentSpan {
		return
	}
	r.sought = now
	for id, s := range r.shown {
		if now.Sub(s.seenAt) > maxRecentSpan {
			delete(r.shown, id)
		}
	}
}

// responseTimesOf returns the percentiles of a resource, nil if no call has ended.
func (h handler) responseTimesOf(view core.ResourceView) *ResponseTimes {
	times, since := h.recent.of(view)
	if times.Count == 0 {
		return nil
	}
	return &ResponseTimes{
		P50: times.Quantile(0.5).Seconds(), P90: times.Quantile(0.9).Seconds(), P99: times.Quantile(0.99).Seconds(),
		Count: times.Count, Since: timeOf(h.engine.Clock(), since),
	}
}
