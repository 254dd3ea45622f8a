package rule

import (
	"math"
	"sync/atomic"
)

// Signal is the name of a number that tells how busy the machine, the container or the
// process is. Programs can have signals of their own, see core.SignalSource.
type Signal string

// The signals that package signal can read.
const (
	// SignalCPU is the share of the processor time in use, from 0 to 1, of what the
	// process may use: that of its container if it has a quota, else of the machine.
	SignalCPU Signal = "cpu"

	// SignalLoad is the load average of a minute, divided by the number of processors.
	SignalLoad Signal = "load"

	// SignalMemory is the share of the memory limit that is in use, from 0 to 1: of the
	// limit of the container or GOMEMLIMIT, whichever is used most, or of the machine if
	// there is neither.
	SignalMemory Signal = "memory"

	// SignalSchedulerDelay is how long goroutines that can run wait for a processor, in
	// seconds: the 99th percentile of late.
	SignalSchedulerDelay Signal = "schedulerDelay"

	// SignalGC is the share of the processor time that garbage collection takes.
	SignalGC Signal = "gc"

	// SignalThrottled is the share of the time in which the container had used up its
	// quota of processor time.
	SignalThrottled Signal = "throttled"
)

// Signals are readings of signals.
type Signals interface {
	// Reading returns the reading of a signal, which is the same for the life of the
	// engine. Only signals that a rule names in [Spec.Signals] or [Spec.Hints] are
	// sampled.
	Reading(Signal) *Reading
}

// Reading is what a signal showed when it was last sampled. It is safe for concurrent
// use; reading it is one atomic load. The zero value is one that was not sampled yet.
type Reading struct{ word atomic.Uint64 }

// unknown is an offset of the bits of numbers, so that the zero word is none.
const unknown = 1

// Load returns the number; false if it is not known, because the signal was not sampled
// yet or cannot be read.
func (r *Reading) Load() (value float64, ok bool) {
	word := r.word.Load()
	if word == 0 {
		return 0, false
	}
	return math.Float64frombits(word - unknown), true
}

// Store sets the number. A number that is not finite says that the signal cannot be read.
func (r *Reading) Store(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		r.word.Store(0)
		return
	}
	r.word.Store(math.Float64bits(value) + unknown)
}
