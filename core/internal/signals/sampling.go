package signals

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const (
	// A reading is in force for eight intervals, so that one that comes late changes
	// nothing, but at least for leastMaxAge.
	maxAgeIntervals = 8
	leastMaxAge     = 2 * time.Second

	// closeGrace is how long Close waits for a source that is asked, in real time.
	closeGrace = time.Second
)

// maxAge returns the age from which on a reading counts as not known.
func (s *Set) maxAge() time.Duration { return max(maxAgeIntervals*s.Interval, leastMaxAge) }

// sampler samples signals once an interval. The source is asked in a goroutine of its own:
// if it does not answer, the sampler notices.
type sampler struct {
	of    *Set
	ended <-chan struct{} // closed when rules read no signals any more, or the engine is closed
	timer clock.Timer
}

// sampleUntil samples at once, and then once an interval.
func (s *Set) sampleUntil(ended <-chan struct{}) {
	by := sampler{of: s, ended: ended, timer: clock.TimerAt(s.Clock, s.Clock.Now())}
	defer by.timer.Stop()
	for {
		select {
		case <-by.timer.C():
		case <-ended:
			return
		}
		if !by.sampleAll() {
			return
		}
		by.timer.Reset(s.Interval)
	}
}

// sampleAll samples the signals that rules read. Readings that take long share half of the
// greatest age, so that other readings do not get too old because of them. It returns false
// if the sampler is to end.
func (s *sampler) sampleAll() bool {
	set := s.of
	maxAge := set.maxAge()
	end := set.Clock.Now().Add(maxAge / 2)
	used := set.used()
	for i, of := range used {
		now := set.Clock.Now()
		share := end.Sub(now) / time.Duration(len(used)-i)
		if !s.sample(of, now.Add(max(share, maxAge/16))) {
			return false
		}
	}
	return true
}

// sample asks the source for a signal, and waits for the answer until the deadline. It
// returns false if the sampler is to end.
func (s *sampler) sample(of *signal, deadline clock.Instant) bool {
	set := s.of
	ctx, cancel := context.WithCancel(set.ctx)
	defer cancel()
	asking, answered := set.asking, make(chan struct{})
	for {
		s.timer.Reset(min(set.Interval, deadline.Sub(set.Clock.Now())))
		select {
		case asking <- struct{}{}: // no earlier reading goes on any more
			asking = nil
			go func() {
				defer close(answered)
				set.ask(ctx, of)
			}()
		case <-answered:
			return true
		case <-s.timer.C():
			now := set.Clock.Now()
			set.expire(now)
			if now >= deadline {
				return true
			}
		case <-s.ended:
			return false
		}
	}
}

// SampleAll samples the signals now, and waits for the source however long it takes.
func (s *Set) SampleAll() {
	for _, of := range s.used() {
		select {
		case s.asking <- struct{}{}:
			s.ask(s.ctx, of)
		case <-s.Closed:
			return
		}
	}
}

// ask asks the source for a signal and notes the answer, unless ctx has ended by then.
// The caller has put a value into Set.asking; it is taken out.
func (s *Set) ask(ctx context.Context, of *signal) {
	defer func() { <-s.asking }()
	if ctx.Err() != nil {
		return
	}
	value, err := s.read(ctx, of.name)
	if ctx.Err() == nil {
		s.note(of, value, err)
	}
}

// read asks the source. A source that panics is one that cannot read the signal.
func (s *Set) read(ctx context.Context, name rule.Signal) (value float64, err error) {
	if s.Source == nil {
		return 0, errNoSource
	}
	s.mu.Lock()
	s.asked = name
	s.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("core: the source of signals panicked: %v", r)
		}
	}()
	return s.Source.Read(ctx, name)
}

// note notes what the source says of a signal.
func (s *Set) note(of *signal, value float64, err error) {
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		err = fmt.Errorf("core: the source of signals says %v", value)
	}
	now := s.Clock.Now() // which may be code of the program
	s.mu.Lock()
	var changes []Change
	if len(of.readers) > 0 {
		of.at = now
		changes = of.set(value, err)
	}
	s.mu.Unlock()
	s.report(changes)
}

// expire makes signals unknown that the source has not told for too long.
func (s *Set) expire(now clock.Instant) {
	maxAge := s.maxAge()
	var changes []Change
	s.mu.Lock()
	err := fmt.Errorf("core: the source of signals has not answered for %v, it reads %q: its Read should end with its context",
		maxAge, s.asked)
	for _, of := range s.all {
		if len(of.readers) > 0 && now.Sub(max(of.at, of.since)) >= maxAge {
			changes = append(changes, of.set(0, err)...)
		}
	}
	s.mu.Unlock()
	s.report(changes)
}

// AwaitSource waits until the source is no longer asked: not for long, since a source that
// ignores its context must not keep the engine from closing.
func (s *Set) AwaitSource() {
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case s.asking <- struct{}{}:
		<-s.asking
	case <-grace.C:
	}
}
