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
}

// statusAge is how old a status may be that is shown. It may have a thousand limiters: nobody needs it each
// second.
const statusAge = 1900 * time.Millisecond

// forget has them read again, since something was changed.
func (s *statuses) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Time{}
}

// read returns them as they were within the last two seconds.
func (s *statuses) read(ctx context.Context) ([]answered[inspect.Status], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < statusAge {
		return s.known, s.err
	}
	all, err := s.fleet.list(ctx)
	if err != nil {
		s.known, s.err, s.at = nil, err, time.Now()
		return nil, err
	}
	// The answer may come when the screen that has asked is closed, and others need it.
	ctx = context.WithoutCancel(ctx)
	s.known = s.gather.ask(ctx, all, func(ctx context.Context, i instance) (status inspect.Status, err error) {
		return status, i.ask(ctx, "status", url.Values{"limiters": {"changed"}}, &status)
	})
	s.err, s.at = nil, time.Now()
	return s.known, nil
}
