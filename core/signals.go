package core

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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
	// force read. It should return soon after ctx has ended: then its answer has come too
	// late, or the engine is closed. While it does not, no signal can be read. Signals that
	// have not been read for long are not known, see [Config.SignalInterval].
	Read(ctx context.Context, signal rule.Signal) (float64, error)
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

	source SignalSource
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
	readers  map[rule.Key]struct{}
	since    clock.Instant // when a rule began to read it
	at       clock.Instant // when it was last sampled
	err      error
	isLogged bool // that it cannot be read
	hasNew   bool // a rule reads it that did not when it was sampled last
}

func (s *signals) init(config Config) {
	s.source = config.Signals
	s.interval = cmp.Or(config.SignalInterval, DefaultSignalInterval)
	s.all = make(map[rule.Signal]*signal)
	s.asking = make(chan struct{}, 1)
	s.ctx, s.cancel = context.WithCancel(context.Background())
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
			of.since = now
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

// signalChange is what the log says of a signal that has changed; nil err means that it can
// be read again.
type signalChange struct {
	of    *signal
	rules []string
	err   error
}

// set notes what the signal shows, or why it is not known. It returns what there is to log:
// that it can no longer be read, also for a rule that begins to read it then, or that it can
// again. The caller holds signals.mu.
func (of *signal) set(value float64, err error) (changes []signalChange) {
	if err == nil {
		of.reading.Store(value)
	} else {
		of.reading.Fail()
	}
	of.err = err
	if of.isLogged != (err != nil) || err != nil && of.hasNew {
		changes = append(changes, signalChange{of, of.status().Rules, err})
	}
	of.isLogged, of.hasNew = err != nil, false
	return changes
}

// logSignals writes to the log what has changed. The caller holds no lock.
func (e *Engine) logSignals(changes []signalChange) {
	for _, c := range changes {
		name, rules := slog.String("signal", string(c.of.name)), slog.Any("rules", c.rules)
		if c.err == nil {
			e.log.Info("penstock: a signal can be read again", name, rules)
			e.events.add(Event{At: e.clock.Now(), Type: EventSignal, Source: string(c.of.name), To: "known"})
			continue
		}
		e.log.Error("penstock: a signal cannot be read, rules that need it let calls pass",
			name, rules, slog.Any("error", c.err))
		e.events.add(Event{At: e.clock.Now(), Type: EventSignal, Source: string(c.of.name), To: "unknown", Err: c.err.Error()})
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
