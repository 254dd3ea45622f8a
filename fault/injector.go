package fault

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/internal/statechange"
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
	changes    statechange.Queue
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
	return splitmix.Mix(in.seed + number*splitmix.Increment)
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
		in.changes.Add(in.current.Load().changed, at, in.state, state)
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

// unlock reports the changes of state and releases the mutex.
func (in *injector) unlock() { in.changes.Unlock(&in.mu) }
