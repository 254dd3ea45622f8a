package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// SignalStatus tells how a signal is that rules in force read.
type SignalStatus struct {
	Signal rule.Signal
	Value  float64       // when it was last sampled; 0 if Err is not nil
	Err    error         // why it is not known
	At     clock.Instant // when it was last sampled; 0 if it never was
	Rules  []string      // that read it: at most ten of them, by kind and name
}

// SampleSignals samples the signals that rules in force read, now, and waits for the source
// however long it takes. The engine samples by itself unless [Config.SignalInterval] is
// negative. Of an engine that was closed it does nothing.
func (e *Engine) SampleSignals() { e.signals.SampleAll() }

// signalStatus returns the state of all signals that rules in force read, by name.
func (e *Engine) signalStatus() (list []SignalStatus) {
	for _, s := range e.signals.Status() {
		list = append(list, SignalStatus(s))
	}
	return list
}
