package settings

import "github.com/penstock-go/penstock/rule"

// KnownSignals returns the signals that package signal can read.
func KnownSignals() []rule.Signal {
	return []rule.Signal{
		rule.SignalCPU, rule.SignalLoad, rule.SignalMemory, rule.SignalSchedulerDelay, rule.SignalGC, rule.SignalThrottled,
	}
}
