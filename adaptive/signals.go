package adaptive

import "github.com/penstock-go/penstock/rule"

// signalThreshold is a signal and the value above which a rule sheds calls.
type signalThreshold struct {
	signal  rule.Signal
	reading *rule.Reading
	limit   float64
}

// signalsOf returns the signals that a rule reads.
func signalsOf(r *Rule) (signals []rule.Signal) {
	for _, s := range thresholdsOf(r) {
		signals = append(signals, s.signal)
	}
	return signals
}

// hintsOf returns the signals that a rule reads if they are to be had.
func hintsOf(r *Rule) []rule.Signal {
	if r.Strategy != Latency {
		return nil
	}
	return []rule.Signal{rule.SignalSchedulerDelay}
}

// signalThresholds returns the signals that a rule reads, with their readings.
func signalThresholds(r *Rule, env rule.Env) []signalThreshold {
	list := thresholdsOf(r)
	for i := range list {
		list[i].reading = env.Signals.Reading(list[i].signal)
	}
	return list
}

// thresholdsOf returns the signals that a rule reads, without readings.
func thresholdsOf(r *Rule) (list []signalThreshold) {
	for _, s := range []signalThreshold{
		{signal: rule.SignalCPU, limit: r.CPU},
		{signal: rule.SignalLoad, limit: r.Load},
		{signal: rule.SignalMemory, limit: r.Memory},
		{signal: rule.SignalSchedulerDelay, limit: r.SchedulerDelay.Seconds()},
	} {
		if s.limit > 0 {
			list = append(list, s)
		}
	}
	return list
}

// excess returns the value as a share of the threshold, more than 1 if it is above; false
// if the signal cannot be read.
func (s *signalThreshold) excess() (share float64, ok bool) {
	value, ok := s.reading.Load()
	return value / s.limit, ok
}
