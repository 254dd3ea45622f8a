package core

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/signals"
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
const MaxSignalRules = signals.MaxRules

// newSignals returns the signals that rules of the engine read.
func (e *Engine) newSignals(config *Config) *signals.Set {
	return signals.New(signals.Config{
		Source: config.Signals, Interval: cmp.Or(config.SignalInterval, DefaultSignalInterval),
		Clock: e.clock, Closed: e.closed, Start: e.running.Go, Report: e.reportSignal,
	})
}

// SampleSignals samples the signals that rules in force read, now, and waits for the source
// however long it takes. The engine samples by itself unless [Config.SignalInterval] is
// negative. Of an engine that was closed it does nothing.
func (e *Engine) SampleSignals() { e.signals.SampleAll() }

// reportSignal logs that a signal can be read again, or not any more.
func (e *callEnv) reportSignal(c signals.Change) {
	name, rules := slog.String("signal", string(c.Signal)), slog.Any("rules", c.Rules)
	if c.Err == nil {
		e.log.Info("penstock: a signal can be read again", name, rules)
		e.events.add(Event{At: e.clock.Now(), Type: EventSignal, Source: string(c.Signal), To: "known"})
		return
	}
	e.log.Error("penstock: a signal cannot be read, rules that need it let calls pass",
		name, rules, slog.Any("error", c.Err))
	e.events.add(Event{At: e.clock.Now(), Type: EventSignal, Source: string(c.Signal), To: "unknown", Err: c.Err.Error()})
}

// signalStatus returns the state of all signals that rules in force read, by name.
func (e *Engine) signalStatus() (list []SignalStatus) {
	for _, s := range e.signals.Status() {
		list = append(list, SignalStatus(s))
	}
	return list
}
