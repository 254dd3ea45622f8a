package core

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
func (s *signals) maxAge() time.Duration { return max(maxAgeIntervals*s.interval, leastMaxAge) }

// sampler samples signals once an interval. The source is asked in a goroutine of its own:
// if it does not answer, the sampler notices.
type sampler struct {
	engine *Engine
	ended  <-chan struct{} // closed when rules read no signals any more
	timer  clock.Timer
}

// sampleUntil samples at once, and then once an interval.
func (e *Engine) sampleUntil(ended <-chan struct{}) {
	s := sampler{engine: e, ended: ended, timer: clock.TimerAt(e.clock, e.clock.Now())}
	defer s.timer.Stop()
	for {
		select {
		case <-s.timer.C():
		case <-ended:
			return
		case <-e.closed:
			return
		}
		if !s.sampleAll() {
			return
		}
		s.timer.Reset(e.signals.interval)
	}
}

// sampleAll samples the signals that rules read. Readings that take long share half of the
// greatest age, so that other readings do not get too old because of them. It returns false
// if the sampler is to end.
func (s *sampler) sampleAll() bool {
	e := s.engine
	maxAge := e.signals.maxAge()
	end := e.clock.Now().Add(maxAge / 2)
	used := e.signals.used()
	for i, of := range used {
		now := e.clock.Now()
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
	e := s.engine
	ctx, cancel := context.WithCancel(e.signals.ctx)
	defer cancel()
	asking, answered := e.signals.asking, make(chan struct{})
	for {
		s.timer.Reset(min(e.signals.interval, deadline.Sub(e.clock.Now())))
		select {
		case asking <- struct{}{}: // no earlier reading goes on any more
			asking = nil
			go func() {
				defer close(answered)
				e.askSource(ctx, of)
			}()
		case <-answered:
			return true
		case <-s.timer.C():
			now := e.clock.Now()
			e.expireSignals(now)
			if now >= deadline {
				return true
			}
		case <-s.ended:
			return false
		case <-e.closed:
			return false
		}
	}
}

// SampleSignals samples the signals that rules in force read, now, and waits for the source
// however long it takes. The engine samples by itself unless [Config.SignalInterval] is
// negative. Of an engine that was closed it does nothing.
func (e *Engine) SampleSignals() {
	s := &e.signals
	for _, of := range s.used() {
		select {
		case s.asking <- struct{}{}:
			e.askSource(s.ctx, of)
		case <-e.closed:
			return
		}
	}
}

// askSource asks the source for a signal and notes the answer, unless ctx has ended by then.
// The caller has put a value into signals.asking; it is taken out.
func (e *Engine) askSource(ctx context.Context, of *signal) {
	s := &e.signals
	defer func() { <-s.asking }()
	if ctx.Err() != nil {
		return
	}
	value, err := s.read(ctx, of.name)
	if ctx.Err() == nil {
		e.noteSample(of, value, err)
	}
}

// read asks the source. A source that panics is one that cannot read the signal.
func (s *signals) read(ctx context.Context, name rule.Signal) (value float64, err error) {
	if s.source == nil {
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
	return s.source.Read(ctx, name)
}

// noteSample notes what the source says of a signal.
func (e *Engine) noteSample(of *signal, value float64, err error) {
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		err = fmt.Errorf("core: the source of signals says %v", value)
	}
	s := &e.signals
	s.mu.Lock()
	var changes []signalChange
	if len(of.readers) > 0 {
		of.at = e.clock.Now()
		changes = of.set(value, err)
	}
	s.mu.Unlock()
	e.logSignals(changes)
}

// expireSignals makes signals unknown that the source has not told for too long.
func (e *Engine) expireSignals(now clock.Instant) {
	s := &e.signals
	maxAge := s.maxAge()
	var changes []signalChange
	s.mu.Lock()
	err := fmt.Errorf("core: the source of signals has not answered for %v, it reads %q: its Read should end with its context",
		maxAge, s.asked)
	for _, of := range s.all {
		if len(of.readers) > 0 && now.Sub(max(of.at, of.since)) >= maxAge {
			changes = append(changes, of.set(0, err)...)
		}
	}
	s.mu.Unlock()
	e.logSignals(changes)
}

// awaitSource waits until the source is no longer asked: not for long, since a source that
// ignores its context must not keep the engine from closing.
func (s *signals) awaitSource() {
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case s.asking <- struct{}{}:
		<-s.asking
	case <-grace.C:
	}
}
