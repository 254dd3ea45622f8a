package fault

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/internal/statechange"
	"github.com/penstock-go/penstock/internal/waitqueue"
)

// injector is what all versions of a rule on a resource have in common.
type injector struct {
	seed uint64

	// current is the version in force. injecting is the same while its state is Active,
	// else nil: that is what calls look at. Both change under mu.
	current, injecting atomic.Pointer[limiter]

	// recheck is the instant from which on a call looks whether a rule that injects nothing does so
	// again; it changes under mu.
	recheck atomic.Int64

	injected atomic.Uint64 // calls

	// mu guards what follows, and the waiters. A call takes it only if it is chosen.
	mu         sync.Mutex
	state      string // as reported
	forcedOff  bool
	retired    bool // the rule is gone
	delayed    waitqueue.Queue[waiter]
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

// recheckAfter is how often calls look whether a rule that has ended is active again.
const recheckAfter = time.Second

// followCalendar notes that the rule has ended if it has, and that it has not after all if the wall
// clock was set back.
func (in *injector) followCalendar(now clock.Instant) {
	l := in.current.Load()
	switch remaining := l.remaining(now); {
	case in.state == Active && remaining <= 0:
		in.changeTo(Ended, now.Add(remaining))
	case in.state == Ended && l.left != nil && remaining > 0:
		in.changeTo(Active, now)
	}
	in.scheduleRecheck(now)
}

// scheduleRecheck notes when calls are to look again whether the rule is active.
func (in *injector) scheduleRecheck(now clock.Instant) {
	at := clock.Instant(math.MaxInt64)
	if in.state == Ended && in.current.Load().left != nil {
		at = now.Add(recheckAfter)
	}
	in.recheck.Store(int64(at))
}

// changeTo puts a state in force and notes the change. Calls in a delay go on at once
// unless the rule is active.
func (in *injector) changeTo(state string, at clock.Instant) {
	if state != in.state {
		in.changes.Add(in.current.Load().changed, at, in.state, state, "")
		in.state = state
	}
	in.publish()
	in.scheduleRecheck(at)
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

// releaseAll ends all delays, also those behind one whose wake-up panics.
func (in *injector) releaseAll() {
	defer func() {
		if in.delayed.Len() > 0 {
			in.releaseAll()
		}
	}()
	for in.delayed.Len() > 0 {
		w := in.delayed.First()
		in.delayed.Remove(&w.node)
		w.Grant(0)
		w.Wake()
	}
}

// unlock reports the changes of state and releases the mutex.
func (in *injector) unlock() { in.changes.Unlock(&in.mu) }
