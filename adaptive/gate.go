package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// gate is what all versions of a rule with the strategy latency share: the calls under way,
// those that wait, and the control of the limit.
//
// The word says what happens to a call that comes:
//
//   - While it is open, it has the limit. Calls pass by one compare-and-swap of
//     flight.calls, and leave by one addition.
//   - While it is full, no call passes but by the lock, and calls that leave take the lock
//     to let others pass. The word has a verdict for each level: wait or refuse.
//
// A call that leaves counts itself out first and looks at the word after that. Who marks
// the gate full does so first and looks at the calls under way after that. So no place is
// free for long while a call waits.
type gate struct {
	_ [cacheLine]byte // what every call writes stands apart from what it only reads
	flight
	_ [cacheLine - 32]byte

	word atomic.Uint64
	due  atomic.Int64 // the clock.Instant from which on the window may be complete
	late atomic.Int64 // the time.Duration from which on a failed call is a sign of overload
	_    [cacheLine - 24]byte

	mu       sync.Mutex // guards what follows
	queue    waiters
	room     room
	advanced clock.Instant // up to which room has the time
	control  *limit.Control
	limit    uint64
	begun    counts        // when the window began
	fullAt   clock.Instant // since when the gate is full; meaningless while it is open
	fullTime time.Duration // in the window, up to fullAt
	isFull   bool
	current  *latencyLimiter // the version in force
	retired  bool            // current is gone; a newer version may follow

	shed [levels]atomic.Uint64 // calls refused
}

const (
	cacheLine = 64

	full         = 1 << 63
	verdictShift = 32 // a bit for each level: refuse
)

// init starts the gate for the first version of a rule.
func (g *gate) init(l *latencyLimiter, now clock.Instant) {
	r := l.rule
	g.current = l
	g.control = limit.New(r.InitialLimit, r.MinLimit, r.MaxLimit)
	g.advanced = now
	g.beginWindow(now)
	g.apply(now)
	g.publish()
}

// lock locks the gate and takes the time since the last event into account.
func (g *gate) lock(now clock.Instant) {
	g.mu.Lock()
	g.advance(now)
}

func (g *gate) advance(now clock.Instant) {
	if now > g.advanced {
		g.room.advance(now.Sub(g.advanced), &g.queue.size)
		g.advanced = now
	}
}

// unlock publishes what has changed since lock.
func (g *gate) unlock() {
	g.publish()
	g.mu.Unlock()
}

// publish writes the word.
func (g *gate) publish() {
	word := g.limit
	if g.isFull {
		word = full
		for i, sum := 0, 0; i < levels; i++ {
			if sum += g.queue.size[i]; g.isRoomFull(i, sum) {
				word |= 1 << (verdictShift + i)
			}
		}
	}
	if g.word.Load() != word {
		g.word.Store(word)
	}
}

// isRoomFull says whether a call of a level may not wait, given how many calls of that
// level and of more important ones do.
func (g *gate) isRoomFull(level, waiting int) bool { return float64(waiting) >= g.room.most[level] }

// leave counts a call out, and lets others pass.
func (g *gate) leave(now clock.Instant) {
	g.flight.leave(now)
	if g.word.Load()&full != 0 {
		g.lock(now)
		g.serve(now)
		g.unlock()
	}
}

// giveBack undoes that a call passed.
func (g *gate) giveBack(now clock.Instant) { g.leave(now) }

// done counts the end of a call.
func (g *gate) done(exit rule.Exit) {
	g.end(exit.Took(), exit.Failed || exit.Ignored, time.Duration(g.late.Load()))
	g.leave(exit.Now)
	if exit.Now >= clock.Instant(g.due.Load()) && g.mu.TryLock() {
		g.advance(exit.Now)
		g.closeWindow(exit.Now)
		g.unlock()
	}
}

// acquireFull decides on a call that finds the limit reached.
func (g *gate) acquireFull(c rule.Call, word uint64) rule.Decision {
	if word&full == 0 {
		return rule.Wait // Join marks the gate as full
	}
	level := levelOf(c.Priority())
	if word>>(verdictShift+level)&1 != 0 {
		g.shed[level].Add(1)
		return rule.Block
	}
	return rule.Wait
}

// join has a call wait.
func (g *gate) join(l *latencyLimiter, c rule.Call, patience rule.Patience) (rule.Waiter, rule.Decision) {
	g.lock(c.Now)
	defer g.unlock()
	if !g.activate(l, c.Now) {
		return nil, rule.Stale
	}
	g.markFull(c.Now)
	if g.queue.total == 0 && g.begin(c.Now, g.limit) {
		g.openIfIdle(c.Now)
		return nil, rule.Pass
	}
	level, waiting := levelOf(c.Priority()), 0
	for i := range level + 1 {
		waiting += g.queue.size[i]
	}
	if g.isRoomFull(level, waiting) || patience.Until <= c.Now || patience.Since.Add(g.longestWait()) <= c.Now {
		g.shed[level].Add(1)
		return nil, rule.Block
	}
	w := &waiter{gate: g, wake: patience.Wake, since: patience.Since, level: level}
	g.queue.push(w)
	g.displace(level)
	g.serve(c.Now)
	return w, rule.Wait
}

// displace refuses calls of less important levels, the newest first, that have no room any
// more.
func (g *gate) displace(level int) {
	waiting := 0
	for i := range levels {
		waiting += g.queue.size[i]
		for i > level && g.queue.size[i] > 0 && float64(waiting) > math.Ceil(g.room.most[i]) {
			g.refuse(g.queue.newest[i])
			waiting--
		}
	}
}

// refuse ends the wait of a call.
func (g *gate) refuse(w *waiter) {
	g.shed[w.level].Add(1)
	g.finish(w, refused)
}

// finish takes a waiter out of the queue and wakes it.
func (g *gate) finish(w *waiter, state uint32) {
	g.queue.remove(w)
	w.state.Store(state)
	w.wake()
}

func (g *gate) finishAll(state uint32) {
	for g.queue.total > 0 {
		g.finish(g.queue.next(), state)
	}
}

// longestWait returns how long a call may wait.
func (g *gate) longestWait() time.Duration { return g.room.longest + g.room.longest/2 }

// endAtDeadline returns how long a call may still wait; 0 if its wait has ended.
func (g *gate) endAtDeadline(w *waiter, now clock.Instant) time.Duration {
	g.lock(now)
	defer g.unlock()
	if w.state.Load() != queued {
		return 0
	}
	if remaining := w.since.Add(g.longestWait()).Sub(now); remaining > 0 {
		return remaining
	}
	g.refuse(w)
	g.openIfIdle(now)
	return 0
}

func (g *gate) leaveQueue(w *waiter, now clock.Instant) {
	g.lock(now)
	defer g.unlock()
	if w.state.Load() == queued {
		g.queue.remove(w)
		w.state.Store(left)
		g.openIfIdle(now)
	}
}

// serve lets waiting calls pass as far as the limit allows, and opens the gate if it is
// not reached.
func (g *gate) serve(now clock.Instant) {
	g.measureIfDrained(now)
	for w := g.queue.next(); w != nil; w = g.queue.next() {
		if now > w.since.Add(g.longestWait()) {
			g.refuse(w)
			continue
		}
		if !g.begin(now, g.limit) {
			return
		}
		g.finish(w, granted)
	}
	g.openIfIdle(now)
}

// markFull has all calls take the lock.
func (g *gate) markFull(now clock.Instant) {
	if !g.isFull {
		g.isFull, g.fullAt = true, now
		g.word.Store(full)
	}
}

// openIfIdle lets calls pass without the lock if nobody waits and the limit is not reached.
func (g *gate) openIfIdle(now clock.Instant) {
	if g.isFull && g.queue.total == 0 && g.underWay() < g.limit && !g.control.Draining() {
		g.isFull = false
		g.fullTime += max(now.Sub(g.fullAt), 0)
	}
}

// beginWindow begins another window.
func (g *gate) beginWindow(now clock.Instant) {
	g.begun = g.read(now)
	g.fullTime, g.fullAt = 0, now
	least, _, _ := g.control.Need()
	g.due.Store(int64(now.Add(least)))
}

// closeWindow hands the window to the control if it is complete.
func (g *gate) closeWindow(now clock.Instant) {
	w := g.read(now).since(g.begun)
	least, most, ends := g.control.Need()
	switch {
	case w.Length < 0 || w.Length > time.Minute || w.Calls > (callsMask+1)*w.Length.Seconds():
		g.beginWindow(now) // the clock has been set, or nothing has happened for long
		return
	case w.Length < least:
		return
	case w.Length < most && w.Ends < ends:
		g.due.Store(int64(now.Add(least / 8)))
		return
	}
	w.Full = g.fullTime
	if g.isFull {
		w.Full += max(now.Sub(g.fullAt), 0)
	}
	w.Over = g.room.over()
	g.control.Close(w)
	g.beginWindow(now)
	g.apply(now)
}

// apply puts the limit of the control in force.
func (g *gate) apply(now clock.Instant) {
	g.limit = uint64(math.Ceil(g.control.Limit()))
	base := g.control.Baseline()
	rate := g.control.Rate()
	maxDelay := g.current.rule.MaxDelay
	if base == 0 {
		base = maxDelay.Seconds() / 10
		rate = float64(g.limit) / base
	}
	g.late.Store(int64(g.control.Late() * float64(time.Second)))
	g.room.configure(base, g.control.Variation(), rate, maxDelay)
	if g.underWay() >= g.limit {
		g.markFull(now)
	}
	g.serve(now)
}

// measureIfDrained begins the measurement of a probe when few enough calls are under way.
func (g *gate) measureIfDrained(now clock.Instant) {
	if g.control.Draining() && g.underWay() <= g.limit {
		g.control.Drained()
		g.beginWindow(now)
	}
}

// activate puts a version in force if it is newer than the one that is. It returns whether
// the version is in force.
func (g *gate) activate(l *latencyLimiter, now clock.Instant) bool {
	if l.version > g.current.version {
		g.replace(l, now)
	}
	return l.version == g.current.version && !g.retired
}

// replace puts a newer version of the rule in force. The limit stays as far as the new
// version allows it, and so do waiting calls.
func (g *gate) replace(l *latencyLimiter, now clock.Instant) {
	former := g.current.rule
	g.current, g.retired = l, false
	if l.rule.Shadow || l.rule.Origin != former.Origin || l.rule.Inbound != former.Inbound {
		g.finishAll(released) // the rule may not be one for them any more
	}
	g.control.SetBounds(l.rule.MinLimit, l.rule.MaxLimit)
	g.apply(now)
	if l.rule.MaxDelay < former.MaxDelay {
		g.queue.wakeAll() // their waits end sooner
	}
}
