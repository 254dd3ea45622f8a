package fault

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// injector is what all versions of a rule on a resource have in common.
type injector struct {
	seed uint64

	// current is the version in force. injecting is the same while its state is Active,
	// else nil: that is what calls look at. Both change under mu.
	current, injecting atomic.Pointer[limiter]

	injected atomic.Uint64 // calls

	// mu guards what follows, and the waiters. A call takes it only if it is chosen.
	mu         sync.Mutex
	state      string // as reported
	forcedOff  bool
	retired    bool // the rule is gone
	delayed    waiters
	notDelayed uint64
	changes    []change // of the state, to be reported
	reporting  bool
}

// newInjector returns an injector that draws by the seed, or by one of its own if that is 0.
func newInjector(seed uint64) *injector {
	if seed == 0 {
		seed = maphash.Comparable(maphash.MakeSeed(), 0)
	}
	return &injector{seed: seed}
}

// draw returns what is drawn for a call: a number of 64 bits, always the same for one
// number of a call. It is the SplitMix64 generator, which is asked for one place of its
// sequence.
func (in *injector) draw(number uint64) uint64 {
	z := in.seed + number*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// The methods below are called while mu is held.

// activate puts a version in force if it is newer than the one that is. Calls in a delay
// go on at once: the new version may not be for them, or delay them less.
func (in *injector) activate(l *limiter, now clock.Instant) {
	if l.version <= in.current.Load().version {
		return
	}
	in.current.Store(l)
	in.retired = false
	in.releaseAll()
	in.changeTo(l.stateAt(now), now)
}

// endIfOver notes that the rule has ended if it has.
func (in *injector) endIfOver(now clock.Instant) {
	if l := in.current.Load(); in.state == Active && now >= l.until {
		in.changeTo(Ended, l.until)
	}
}

// changeTo puts a state in force and notes the change. Calls in a delay go on at once
// unless the rule is active.
func (in *injector) changeTo(state string, at clock.Instant) {
	if state != in.state {
		in.changes = append(in.changes, change{in.current.Load(), at, in.state, state})
		in.state = state
	}
	in.publish()
	if state != Active {
		in.releaseAll()
	}
}

// publish shows calls whether the version in force injects faults.
func (in *injector) publish() {
	if in.state == Active {
		in.injecting.Store(in.current.Load())
	} else {
		in.injecting.Store(nil)
	}
}

// releaseAll ends all delays.
func (in *injector) releaseAll() {
	for in.delayed.first != nil {
		w := in.delayed.first
		in.delayed.remove(w)
		w.wake()
	}
}

// change is a change of state that has to be reported.
type change struct {
	by       *limiter
	at       clock.Instant
	from, to string
}

// unlock reports the changes of state and releases the mutex. Changes are reported one
// at a time, in their order and without the mutex. If another goroutine is reporting, it
// reports these changes too.
func (in *injector) unlock() {
	defer in.mu.Unlock()
	if in.reporting {
		return
	}
	in.reporting = true
	defer func() { in.reporting = false }() // also when a report panics
	for len(in.changes) > 0 {
		next := in.changes[0]
		in.changes = slices.Delete(in.changes, 0, 1)
		in.report(next)
	}
}

// report reports one change, and releases the mutex meanwhile.
func (in *injector) report(c change) {
	in.mu.Unlock()
	defer in.mu.Lock()
	c.by.changed(c.at, c.from, c.to)
}
