package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Signal is what the signals of the system show from a time on. Those that are
// nil stay as they were. Load, memory and GC are 0 before they are given.
type Signal struct {
	// At is from 0 to [MaxDuration], and later than that of the signal before.
	At time.Duration

	// CPU is the share of the processors that is in use, from 0 to 1. Before it
	// is given it is the utilisation of the servers that have time slices, or of all that
	// have workers if none has: the share of their workers that was busy since rules read
	// it before, which is a quarter of a second, or of a [Quota] that was used, on
	// average; 0 without servers.
	CPU *float64

	// Load is the load average of the machine, divided by its processors; 0 or more.
	Load *float64

	// Memory is the share of the memory that is in use, from 0 to 1.
	Memory *float64

	// SchedulerDelay is how long goroutines wait for a processor, from 0 to
	// [MaxDuration]. Before it is given it is the 99th percentile of how long calls waited
	// for a worker of the servers that have time slices, of those that began a slice since
	// rules read it before.
	SchedulerDelay *time.Duration

	// GC is the share of the processor time that garbage collection takes, from 0 to 1.
	GC *float64

	// Throttled is the share of the time in which the container had used up its quota of
	// processor time, from 0 to 1. Before it is given it is the share of the time since
	// rules read it before in which workers stood still because the [Quota] of their
	// server was used up.
	Throttled *float64
}

// signalInterval is how often rules read signals.
const signalInterval = 250 * time.Millisecond

// values returns what is given, by the names of signals.
func (s Signal) values() map[rule.Signal]*float64 {
	values := map[rule.Signal]*float64{
		rule.SignalCPU: s.CPU, rule.SignalLoad: s.Load, rule.SignalMemory: s.Memory,
		rule.SignalGC: s.GC, rule.SignalThrottled: s.Throttled, rule.SignalSchedulerDelay: nil,
	}
	if s.SchedulerDelay != nil {
		values[rule.SignalSchedulerDelay] = pointerTo(s.SchedulerDelay.Seconds())
	}
	return values
}

// signals are the signals of a load at work. They are a core.SignalSource.
type signals struct {
	values  map[rule.Signal]float64 // that were given so far
	changes []Signal                // to come
	usage   usage                   // for those that were not
	now     time.Duration
}

func newSignals(load Load, servers []*server) *signals {
	s := &signals{values: make(map[rule.Signal]float64), changes: load.Signals, usage: newUsage(servers)}
	for _, name := range []rule.Signal{rule.SignalLoad, rule.SignalMemory, rule.SignalGC} {
		s.values[name] = 0
	}
	return s
}

// advance moves the signals to a time.
func (s *signals) advance(now time.Duration) {
	for s.now = now; len(s.changes) > 0 && s.changes[0].At <= now; s.changes = s.changes[1:] {
		for name, value := range s.changes[0].values() {
			if value != nil {
				s.values[name] = *value
			}
		}
	}
}

// Read returns what a signal shows.
func (s *signals) Read(_ context.Context, name rule.Signal) (float64, error) {
	if value, given := s.values[name]; given {
		return value, nil
	}
	switch name {
	case rule.SignalCPU:
		return s.usage.utilisation(s.now), nil
	case rule.SignalSchedulerDelay:
		return s.usage.schedulerDelay(), nil
	case rule.SignalThrottled:
		return s.usage.throttled(s.now), nil
	}
	return 0, fmt.Errorf("simulate: a load has no signal %q", name)
}

// sampleSignals has rules read the signals that they are about, and comes back for the
// next time.
func (s *simulation) sampleSignals() {
	for _, i := range s.instances {
		i.signals.advance(s.now)
		i.engine.SampleSignals()
	}
	if s.goesOn() {
		s.queue.add(queuedEvent{kind: signalsSampled, at: s.now + signalInterval})
	}
}
