// Package signals samples the signals that rules in force read, and keeps their readings.
package signals

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Source is core.SignalSource.
type Source interface {
	Read(ctx context.Context, signal rule.Signal) (float64, error)
}

// Status is core.SignalStatus.
type Status struct {
	Signal rule.Signal
	Value  float64
	Err    error
	At     clock.Instant
	Rules  []string
}

// MaxRules is how many rules a Status names.
const MaxRules = 10

// Change says that a signal can be read again, or not any more and why.
type Change struct {
	Signal rule.Signal
	Rules  []string // that read it
	Err    error    // nil if it can be read
}

// Config is what a Set is made of.
type Config struct {
	Source   Source        // nil for none
	Interval time.Duration // negative: only SampleAll samples
	Clock    clock.Clock
	Closed   <-chan struct{} // closed when nothing is sampled any more
	Start    func(func())    // starts a goroutine
	Report   func(Change)    // called without a lock
}

var (
	errNotSampled = errors.New("core: the signal was not sampled yet")
	errNoSource   = errors.New("core: the engine has no source of signals: set core.Config.Signals")
)

// Set is the signals that rules in force read. A goroutine samples them while there are any.
type Set struct {
	Config
	asking chan struct{}   // holds a value while the source is asked
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelFunc

	mu      sync.Mutex  // guards what follows
	asked   rule.Signal // what the source is asked for, or was last
	all     map[rule.Signal]*signal
	watched chan struct{} // closed to end the goroutine; nil while there is none
}

// signal is one signal that rules in force read, or have read.
type signal struct {
	name     rule.Signal
	reading  rule.Reading
	readers  map[rule.Key]bool // whether they need it
	since    clock.Instant     // when a rule began to read it
	at       clock.Instant     // when it was last sampled
	err      error
	isLogged bool // that it cannot be read
	hasNew   bool // a rule reads it that did not when it was sampled last
}

// New returns a set without signals.
func New(config Config) *Set {
	s := &Set{Config: config, all: make(map[rule.Signal]*signal), asking: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Cancel ends the readings that are under way, and the goroutine.
func (s *Set) Cancel() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// end ends the goroutine, if there is one. The caller holds s.mu.
func (s *Set) end() {
	if s.watched != nil {
		close(s.watched)
		s.watched = nil
	}
}

// Reading returns the reading of a signal, for limiters.
func (s *Set) Reading(name rule.Signal) *rule.Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.get(name).reading
}

// get returns a signal. The caller holds s.mu.
func (s *Set) get(name rule.Signal) *signal {
	if s.all[name] == nil {
		s.all[name] = &signal{name: name, readers: make(map[rule.Key]bool), err: errNotSampled}
	}
	return s.all[name]
}

// Replace notes that a rule comes into force in place of another one; either may be nil.
func (s *Set) Replace(from, to rule.Rule, now clock.Instant) {
	before, after := s.readBy(from), s.readBy(to)
	if len(before)+len(after) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range before {
		if !slices.Contains(after, name) {
			delete(s.get(name).readers, from.Key())
		}
	}
	for _, name := range after {
		of := s.get(name)
		if len(of.readers) == 0 {
			s.forgetOld(of, now)
			of.since = now
		}
		if _, known := of.readers[to.Key()]; !known {
			of.hasNew = true
		}
		of.readers[to.Key()] = slices.Contains(to.Signals(), name)
	}
}

// readBy returns the signals that a rule reads, which may be nil.
func (s *Set) readBy(r rule.Rule) []rule.Signal {
	switch {
	case r == nil:
		return nil
	case s.Source == nil:
		return r.Signals()
	}
	return slices.Concat(r.Signals(), r.Hints())
}

// inUse says whether rules in force read any signal. The caller holds s.mu.
func (s *Set) inUse() bool {
	for _, of := range s.all {
		if len(of.readers) > 0 {
			return true
		}
	}
	return false
}

// forgetOld makes a signal unknown that was not sampled of late: no rule has read it. The
// caller holds s.mu.
func (s *Set) forgetOld(of *signal, now clock.Instant) {
	if now.Sub(of.at) > 4*s.Interval.Abs() {
		of.reading.Store(math.NaN())
		of.at, of.err = 0, errNotSampled
	}
}

// Watch starts the goroutine that samples, or ends it, as rules in force need it. The caller sees to it that
// the engine is not closed meanwhile.
func (s *Set) Watch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Interval < 0:
	case s.watched == nil && s.inUse():
		ended := make(chan struct{})
		s.watched = ended
		s.Start(func() { s.sampleUntil(ended) })
	case !s.inUse():
		s.end()
	}
}

// used returns the signals that rules in force read, by name.
func (s *Set) used() (list []*signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.all {
		if len(of.readers) > 0 {
			list = append(list, of)
		}
	}
	slices.SortFunc(list, func(a, b *signal) int { return cmp.Compare(a.name, b.name) })
	return list
}

// set notes what the signal shows, or why it is not known. It returns what there is to log:
// that it can no longer be read, also for a rule that begins to read it then, or that it can
// again. The caller holds Set.mu.
func (of *signal) set(value float64, err error) (changes []Change) {
	if err == nil {
		of.reading.Store(value)
	} else {
		of.reading.Store(math.NaN())
	}
	of.err = err
	if !of.isNeeded() {
		return nil
	}
	if of.isLogged != (err != nil) || err != nil && of.hasNew {
		changes = append(changes, Change{of.name, of.status().Rules, err})
	}
	of.isLogged, of.hasNew = err != nil, false
	return changes
}

// isNeeded says whether a rule that reads the signal cannot do without. The caller holds Set.mu.
func (of *signal) isNeeded() bool {
	for _, needs := range of.readers {
		if needs {
			return true
		}
	}
	return false
}

// report reports what has changed. The caller holds no lock.
func (s *Set) report(changes []Change) {
	for _, c := range changes {
		s.Report(c)
	}
}

// Status returns the state of all signals that rules in force read, by name.
func (s *Set) Status() (list []Status) {
	used := s.used()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range used {
		list = append(list, of.status())
	}
	return list
}

// status returns the state of the signal. The caller holds Set.mu.
func (of *signal) status() Status {
	status := Status{Signal: of.name, Err: of.err, At: of.at}
	if of.err == nil {
		status.Value, _ = of.reading.Load()
	}
	for key := range of.readers {
		status.Rules = append(status.Rules, key.String())
	}
	slices.Sort(status.Rules)
	status.Rules = status.Rules[:min(len(status.Rules), MaxRules)]
	return status
}
