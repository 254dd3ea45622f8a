package console

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

// statuses are those of all instances, which most screens need.
type statuses struct {
	fleet *instances

	mu     sync.Mutex // guards what follows
	gather gatherer[inspect.Status]
	known  []answered[inspect.Status]
	err    error
	at     time.Time
	took   time.Duration // the last reading, of this process
}

const (
	// statusAge is how old a status may be that is shown. It has up to a thousand limiters: nobody needs it
	// each second.
	statusAge = 1900 * time.Millisecond

	// mostStatusAge is how old it may be where many resources make it dear: it takes a hundredth of the time.
	mostStatusAge = 4900 * time.Millisecond
)

// age returns how old what is known may be.
func (s *statuses) age() time.Duration { return min(max(100*s.took, statusAge), mostStatusAge) }

// forget has them read again, since something was changed.
func (s *statuses) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Time{}
}

// read returns them as they were within the last two seconds, or five where many resources make it dear.
func (s *statuses) read(ctx context.Context) ([]answered[inspect.Status], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < s.age() {
		return s.known, s.err
	}
	all, err := s.fleet.list(ctx)
	if err != nil {
		s.known, s.err, s.at = nil, err, time.Now()
		return nil, err
	}
	// The answer may come when the screen that has asked is closed, and others need it.
	ctx = context.WithoutCancel(ctx)
	began := time.Now()
	s.known = s.gather.ask(ctx, all, func(ctx context.Context, i instance) (status inspect.Status, err error) {
		return status, i.ask(ctx, "status", url.Values{"limiters": {"changed"}}, &status)
	})
	s.err, s.at = nil, time.Now()
	if s.fleet.local != nil { // of others it is not known how long they work for it
		s.took = s.at.Sub(began)
	}
	return s.known, nil
}
