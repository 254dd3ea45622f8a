package core

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// SignalSource reads signals, such as how much of the processor is in use. See the
// package signal for those of the system.
type SignalSource interface {
	// Read returns what a signal shows now, or of late, or why that is not known. It is
	// called by one goroutine at a time, once for each sample of a signal that rules in
	// force read.
	Read(signal rule.Signal) (float64, error)
}

// SignalStatus tells how a signal is that rules in force read.
type SignalStatus struct {
	Signal rule.Signal
	Value  float64       // when it was last sampled; 0 if Err is not nil
	Err    error         // why it is not known
	At     clock.Instant // when it was last sampled; 0 if it never was
	Rules  []string      // that read it: at most [MaxSignalRules] of them, by kind and name
}

// MaxSignalRules is how many rules a [SignalStatus] names.
const MaxSignalRules = 10

var (
	errNotSampled = errors.New("core: the signal was not sampled yet")
	errNoSource   = errors.New("core: the engine has no source of signals: set core.Config.Signals")
)

// signals samples the signals that rules in force read. A goroutine does so while there
// are any.
type signals struct {
	interval time.Duration // negative: only [Engine.SampleSignals] samples

	sampling sync.Mutex // is held while the source is asked, and guards it
	source   SignalSource

	mu      sync.Mutex // guards what follows
	all     map[rule.Signal]*signal
	watched chan struct{} // closed to end the goroutine; nil while there is none
}

// signal is one signal that rules in force read, or have read.
type signal struct {
	name     rule.Signal
	reading  rule.Reading
	readers  map[rule.Key]struct{}
	at       clock.Instant
	err      error
	isLogged bool // that it cannot be read
	hasNew   bool // a rule reads it that did not when it was sampled last
}

func (s *signals) init(config Config) {
	s.source = config.Signals
	s.interval = cmp.Or(config.SignalInterval, DefaultSignalInterval)
	s.all = make(map[rule.Signal]*signal)
}

// Reading returns the reading of a signal, for limiters.
func (s *signals) Reading(name rule.Signal) *rule.Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.get(name).reading
}

// get returns a signal. The caller holds s.mu.
func (s *signals) get(name rule.Signal) *signal {
	if s.all[name] == nil {
		s.all[name] = &signal{name: name, readers: make(map[rule.Key]struct{}), err: errNotSampled}
	}
	return s.all[name]
}

// replace notes that a rule comes into force in place of another one; either may be nil.
func (s *signals) replace(from, to rule.Rule, now clock.Instant) {
	var before, after []rule.Signal
	if from != nil {
		before = from.Signals()
	}
	if to != nil {
		after = to.Signals()
	}
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
		}
		if _, known := of.readers[to.Key()]; !known {
			of.readers[to.Key()] = struct{}{}
			of.hasNew = true
		}
	}
}

// inUse says whether rules in force read any signal. The caller holds s.mu.
func (s *signals) inUse() bool {
	for _, of := range s.all {
		if len(of.readers) > 0 {
			return true
		}
	}
	return false
}

// forgetOld makes a signal unknown that was not sampled of late: no rule has read it. The
// caller holds s.mu.
func (s *signals) forgetOld(of *signal, now clock.Instant) {
	if now.Sub(of.at) > 4*s.interval.Abs() {
		of.reading.Fail()
		of.at, of.err = 0, errNotSampled
	}
}

// watchSignals starts the goroutine that samples, or ends it, as rules in force need it. The
// caller holds rules.mu, so that the engine is not closed meanwhile.
func (e *Engine) watchSignals() {
	s := &e.signals
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.interval < 0:
	case s.watched == nil && s.inUse():
		ended := make(chan struct{})
		s.watched = ended
		e.running.Go(func() { e.sampleUntil(ended) })
	case s.watched != nil && !s.inUse():
		close(s.watched)
		s.watched = nil
	}
}

// sampleUntil samples at once, and then once an interval.
func (e *Engine) sampleUntil(ended <-chan struct{}) {
	timer := clock.TimerAt(e.clock, e.clock.Now())
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
		case <-ended:
			return
		case <-e.closed:
			return
		}
		// While the source is asked already, and blocks, no other goroutine waits for it.
		if e.signals.sampling.TryLock() {
			e.sampleSignals()
			e.signals.sampling.Unlock()
		}
		timer.Reset(e.signals.interval)
	}
}

// SampleSignals samples the signals that rules in force read, now. The engine does so by
// itself unless [Config.SignalInterval] is negative.
func (e *Engine) SampleSignals() {
	e.signals.sampling.Lock()
	defer e.signals.sampling.Unlock()
	e.sampleSignals()
}

// sampleSignals is SampleSignals for a caller that holds signals.sampling.
func (e *Engine) sampleSignals() {
	s := &e.signals
	for _, of := range s.used() {
		value, err := s.read(of.name)
		e.noteSample(of, value, err)
	}
}

// used returns the signals that rules in force read, by name.
func (s *signals) used() (list []*signal) {
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

// read asks the source. A source that panics is one that cannot read the signal.
func (s *signals) read(name rule.Signal) (value float64, err error) {
	if s.source == nil {
		return 0, errNoSource
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("core: the source of signals panicked: %v", r)
		}
	}()
	return s.source.Read(name)
}

// noteSample notes what a signal showed, and logs when it can no longer be read, also for a
// rule that begins to read it then, and when it can again.
func (e *Engine) noteSample(of *signal, value float64, err error) {
	s := &e.signals
	s.mu.Lock()
	if len(of.readers) == 0 {
		s.mu.Unlock()
		return
	}
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		err = fmt.Errorf("core: the source of signals says %v", value)
	}
	if err == nil {
		of.reading.Store(value)
	} else {
		of.reading.Fail()
	}
	of.at, of.err = e.clock.Now(), err
	changed := of.isLogged != (err != nil) || err != nil && of.hasNew
	of.isLogged, of.hasNew = err != nil, false
	readers := of.status().Rules
	s.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		e.log.Error("penstock: a signal cannot be read, rules that need it let calls pass",
			slog.String("signal", string(of.name)), slog.Any("rules", readers), slog.Any("error", err))
	default:
		e.log.Info("penstock: a signal can be read again",
			slog.String("signal", string(of.name)), slog.Any("rules", readers))
	}
}

// status returns the state of all signals that rules in force read, by name.
func (s *signals) status() (list []SignalStatus) {
	used := s.used()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range used {
		list = append(list, of.status())
	}
	return list
}

// status returns the state of the signal. The caller holds signals.mu.
func (of *signal) status() SignalStatus {
	status := SignalStatus{Signal: of.name, Err: of.err, At: of.at}
	if of.err == nil {
		status.Value, _ = of.reading.Load()
	}
	for key := range of.readers {
		status.Rules = append(status.Rules, key.String())
	}
	slices.Sort(status.Rules)
	status.Rules = status.Rules[:min(len(status.Rules), MaxSignalRules)]
	return status
}
