package leap

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Node is the statistics of one resource: a leap array of the last minute's seconds,
// totals since the beginning, and the distribution of response times. The zero value is
// ready. All methods are safe for concurrent use. Those that a call goes through are
// lock-free, except for the first call of each second, and allocate only the first time
// that an event of a kind happens.
//
// For each call, Pass and Done are called, or Block of the node or of its [Refusals]; before
// that BeginWait and EndWait, if the call had to wait. Nodes count calls, and in [Totals] the
// tokens that they asked for.
type Node struct {
	// What every call writes: one cache line, if the node is aligned to one. A call that
	// passes costs three atomic writes, to passed, done and the histogram; a call that is
	// blocked one.
	passed    tally             // and the tokens that they took
	done      tally             // calls that ended, and their response times in nanoseconds
	blocked   tally             // and the tokens that they asked for
	blockedBy [ownTallies]tally // those whom the first Refusals block: they are not in blocked
	refusals  int64             // how many Refusals there are; guarded by mu, and the last word of the line

	// What every call reads and few write: another line.
	second      atomic.Int64 // that is open; changes under mu
	maxInFlight peak
	maxTook     peak         // nanoseconds
	moved       atomic.Int64 // calls under way, except those in the words of passed and done
	rare        atomic.Pointer[rareTallies]

	mu      sync.Mutex // guards what follows, and going over to another second
	sums    [3]sums    // of passed, done and all that were blocked
	refused *refused   // what was moved out of blockedBy; nil until there is something
	minute  *leapArray // the seconds before the open one; nil until there is something to keep

	responseTimes Histogram
}

// ownTallies is how many [Refusals] of a node have a tally of their own.
const ownTallies = 4

// refused is how many calls each of the first [Refusals] has blocked.
type refused struct {
	total  [ownTallies]uint64 // moved out of the words
	before [ownTallies]uint64 // of these, in seconds before the open one
}

// movedRefused returns what was moved out of blockedBy. The caller holds n.mu.
func (n *Node) movedRefused() refused {
	if n.refused == nil {
		return refused{}
	}
	return *n.refused
}

// ensureRefused returns where that is kept. The caller holds n.mu.
func (n *Node) ensureRefused() *refused {
	if n.refused == nil {
		n.refused = new(refused)
	}
	return n.refused
}

// rareTallies count events that most resources never have.
type rareTallies struct {
	failed  tally
	waited  tally        // waits that ended, and how long they were, in nanoseconds
	waiting atomic.Int64 // between BeginWait and EndWait
	sums    [2]sums      // of both; guarded by Node.mu
}

// Pass counts a call that is let through at now, with the tokens that it takes, at least 0.
func (n *Node) Pass(now clock.Instant, tokens int32) {
	second := secondOf(now)
	tag := tagOf(second)
	if n.second.Load() == second {
		moved := n.moved.Load()
		if events, ok := n.passed.tryAdd(tag, uint64(tokens)); ok {
			done, open := n.done.inWord(tag)
			if open && n.moved.Load() == moved { // nothing was moved in between
				n.maxInFlight.raise(tag, uint64(max(0, moved+int64(events)-int64(done.events))))
			}
			return
		}
	}
	n.passSlowly(second, tokens)
}

func (n *Node) passSlowly(second int64, tokens int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addSlowly(&n.passed, second, uint64(tokens))
	if n.second.Load() == second {
		n.maxInFlight.raise(tagOf(second), uint64(n.inFlight()))
	}
}

// TakeBack takes back a Pass with these arguments, for a call that is not made after all.
func (n *Node) TakeBack(passed clock.Instant, tokens int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	second := secondOf(passed)
	passes := n.accountOf(&n.passed)
	if second == n.second.Load() {
		n.empty(passes)
		passes.open.take(count{1, uint64(tokens)})
	} else {
		passes.before.take(count{1, uint64(tokens)})
		n.amend(second, func(s *kept) { s.Passed-- })
	}
	n.moved.Add(-1)
}

// Block counts a call that was refused at now, with the tokens that it asked for, at least 0.
func (n *Node) Block(now clock.Instant, tokens int32) { n.count(&n.blocked, now, uint64(tokens)) }

// Done counts the end, at now, of a call that was let through at start.
func (n *Node) Done(start, now clock.Instant, failed bool) {
	took := now.Sub(start)
	if failed { // first: a reader who sees that the call completed sees that it failed
		n.count(&n.ensureRare().failed, now, 0)
	}
	n.end(secondOf(now), nanos(took))
	n.responseTimes.Record(took)
}

// DoneLongLived is Done for a call that lasted as long as its caller wanted: it counts without
// a response time.
func (n *Node) DoneLongLived(now clock.Instant, failed bool) {
	if failed {
		n.count(&n.ensureRare().failed, now, 0)
	}
	n.end(secondOf(now), 0)
}

// end counts the end of a call. It raises the longest response time first: while the
// second is open, so is its peak. If the second ends before the call is counted, the call
// is counted late, with its response time.
func (n *Node) end(second int64, quantity uint64) {
	tag := tagOf(second)
	if n.second.Load() == second {
		n.maxTook.raise(tag, quantity)
		if _, ok := n.done.tryAdd(tag, quantity); ok {
			return
		}
	}
	n.endSlowly(second, quantity)
}

func (n *Node) endSlowly(second int64, quantity uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addSlowly(&n.done, second, quantity)
	if n.second.Load() == second {
		n.maxTook.raise(tagOf(second), quantity)
	}
}

// BeginWait counts a call that has to wait.
func (n *Node) BeginWait() { n.ensureRare().waiting.Add(1) }

// EndWait counts the end, at now, of a wait that began at start, however it
// ended.
func (n *Node) EndWait(start, now clock.Instant) {
	r := n.ensureRare()
	n.count(&r.waited, now, nanos(now.Sub(start)))
	r.waiting.Add(-1) // last: the node is not idle before the wait is counted
}

// count counts an event at now.
func (n *Node) count(t *tally, now clock.Instant, quantity uint64) {
	second := secondOf(now)
	if n.second.Load() == second {
		if _, ok := t.tryAdd(tagOf(second), quantity); ok {
			return
		}
	}
	n.countSlowly(t, second, quantity)
}

func (n *Node) countSlowly(t *tally, second int64, quantity uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addSlowly(t, second, quantity)
}

func (n *Node) ensureRare() *rareTallies {
	if r := n.rare.Load(); r != nil {
		return r
	}
	fresh := new(rareTallies)
	fresh.failed.take() // closes it: it is opened by whoever counts first
	fresh.waited.take()
	n.rare.CompareAndSwap(nil, fresh)
	return n.rare.Load()
}

func secondOf(i clock.Instant) int64 { return int64(i) / int64(time.Second) }
