package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/adaptive/internal/shed"
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
	lastUsed clock.Instant // about when a call ended last
	overdue  clock.Instant // when it has its greatest length
	fullAt   clock.Instant // since when the gate is full; meaningless while it is open
	fullTime time.Duration // in the window, up to fullAt
	isFull   bool
	openedAt clock.Instant   // since when it is open; meaningless while it is full
	turned   bool            // a call that found the gate full did not wait, and no other has waited since
	current  *latencyLimiter // the version in force
	retired  bool            // current is gone; a newer version may follow

	shed    *shed.Threshold
	shedAt  counts // when the threshold was moved last
	refused uint64 // by then
	share   float64
}

const (
	cacheLine = 64

	full         = 1 << 63
	verdictShift = 32 // two bits for each level

	// The verdict on a priority.
	refuseAbove = 1 // refuse all calls
	refuseBelow = 2 // refuse calls below the threshold

	// preferred is how much more room calls have that stand above the threshold.
	preferred = 3
)

// init starts the gate for the first version of a rule.
func (g *gate) init(l *latencyLimiter, env rule.Env) {
	r, now := l.rule, env.Now
	g.shed = shed.New(env.Seed)
	g.current = l
	g.control = limit.New(r.InitialLimit, r.MinLimit, r.MaxLimit)
	g.advanced, g.lastUsed = now, now
	g.beginWindow(now)
	g.apply(now)
	g.publish()
}

// lock locks the gate and takes the time since the last event into account. A window that
// should be over, but in which no call ends, is closed.
func (g *gate) lock(now clock.Instant) {
	g.mu.Lock()
	g.advance(now)
	if now >= g.overdue {
		g.closeWindow(now)
	}
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
			sum += g.queue.size[i]
			word |= g.verdict(i, sum) << (verdictShift + 2*i)
		}
	}
	if g.word.Load() != word {
		g.word.Store(word)
	}
}

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

// acquireFull decides on a call that finds the limit reached, and whose caller is not known.
func (g *gate) acquireFull(c *rule.Call, word uint64) rule.Decision {
	if word&full == 0 {
		g.noteFull(c.Now)
		return rule.Wait
	}
	verdict := word >> (verdictShift + 2*levelOf(c.Priority()))
	switch {
	case verdict&refuseAbove != 0:
		g.shed.Refuse(c.Priority(), false)
		return rule.Block
	case verdict&refuseBelow == 0 || !g.shed.Load().Active():
		g.closeOverdue(c.Now)
		return rule.Wait
	}
	return rule.NeedsAttribute
}

// shedOrWait refuses a call that is below the threshold; others may wait.
func (g *gate) shedOrWait(c *rule.Call) rule.Decision {
	state := g.shed.Load()
	if !state.Active() {
		return rule.Wait
	}
	standing, place := g.shed.Find(state, c, uint64(c.Now))
	if standing != shed.Below {
		return rule.Wait
	}
	g.shed.Count(place)
	g.shed.Refuse(c.Priority(), true)
	return rule.Block
}

// closeOverdue closes a window that should be over for long, but in which no call ends or
// waits.
func (g *gate) closeOverdue(now clock.Instant) {
	if now > clock.Instant(g.due.Load()).Add(time.Second) && g.mu.TryLock() {
		g.advance(now)
		g.closeWindow(now)
		g.unlock()
	}
}

// noteFull marks the gate as full if the limit is reached. The call that found it so may not
// want to wait, or not have to, under a shadow rule.
func (g *gate) noteFull(now clock.Instant) {
	g.lock(now)
	defer g.unlock()
	g.markFull(now)
	g.turned = true // until it joins
	g.openIfIdle(now)
}

// join has a call wait.
func (g *gate) join(l *latencyLimiter, c *rule.Call, patience rule.Patience) (rule.Waiter, rule.Decision) {
	g.lock(c.Now)
	defer g.unlock()
	if !g.activate(l, c.Now) {
		return nil, rule.Stale
	}
	g.markFull(c.Now)
	g.turned = false
	if g.queue.total == 0 && g.begin(c.Now, g.limit) {
		g.openIfIdle(c.Now)
		return nil, rule.Pass
	}
	w := &waiter{gate: g, wake: patience.Wake, since: patience.Since, level: levelOf(c.Priority())}
	if state := g.shed.Load(); state.Active() {
		w.seen = true
		w.below = g.shed.Standing(state, c, uint64(c.Now)) == shed.Below
	}
	if g.verdict(w.level, g.waiting(w.level))&w.refusedBy() != 0 ||
		patience.Until <= c.Now || w.since.Add(g.longestWait()) <= c.Now {
		g.shed.Refuse(c.Priority(), w.seen)
		return nil, rule.Block
	}
	g.queue.push(w)
	g.displace(w.level)
	g.serve(c.Now)
	return w, rule.Wait
}

// waiting returns how many calls of a level and of more important ones wait.
func (g *gate) waiting(level int) int {
	sum := 0
	for i := range level + 1 {
		sum += g.queue.size[i]
	}
	return sum
}

// verdict says which calls of a level may not wait, given how many of that level and of more
// important ones do.
func (g *gate) verdict(level, waiting int) uint64 {
	room := g.room.most[level]
	switch {
	case float64(waiting) < room:
		return 0
	case !g.shed.Load().Active():
		return refuseAbove | refuseBelow
	case float64(waiting) >= preferred*room && g.queue.below[level] == 0:
		return refuseAbove | refuseBelow
	}
	return refuseBelow
}

// displace refuses calls that have no room any more since one of a level has come: the
// newest of less important levels, and of that level those below the threshold.
func (g *gate) displace(level int) {
	active := g.shed.Load().Active()
	for i, waiting := level, g.waiting(level); i < levels; i++ {
		if i > level {
			waiting += g.queue.size[i]
		}
		room := math.Ceil(g.room.most[i])
		for waiting > 0 && float64(waiting) > room && g.queue.below[i] > 0 {
			g.refuse(g.queue.last(i))
			waiting--
		}
		if active {
			room = math.Ceil(preferred * g.room.most[i])
		}
		for i > level && g.queue.size[i] > 0 && float64(waiting) > room {
			g.refuse(g.queue.last(i))
			waiting--
		}
	}
}

// refuse ends the wait of a call.
func (g *gate) refuse(w *waiter) {
	g.shed.Refuse(priorityOf(w.level), w.seen)
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

// markFull has all calls take the lock. Calls that do not wait leave the gate open for
// the moment until the next one comes, in which waiting ones would have kept it full: if it
// is short, that time counts as full.
func (g *gate) markFull(now clock.Instant) {
	if !g.isFull {
		if open := now.Sub(g.openedAt); g.turned && open < g.room.longest/10 {
			g.fullTime += max(min(open, now.Sub(g.begun.at)), 0)
		}
		g.isFull, g.fullAt = true, now
		g.word.Store(full)
	}
}

// openIfIdle lets calls pass without the lock if nobody waits and the limit is not reached.
func (g *gate) openIfIdle(now clock.Instant) {
	if g.isFull && g.queue.total == 0 && g.underWay() < g.limit && !g.control.Draining() {
		g.isFull, g.openedAt = false, now
		g.fullTime += max(now.Sub(g.fullAt), 0)
	}
}

// beginWindow begins another window.
func (g *gate) beginWindow(now clock.Instant) {
	g.begun = g.read(now)
	g.fullTime, g.fullAt = 0, now
	least, most, _ := g.control.Need()
	g.overdue = now.Add(most)
	g.due.Store(int64(now.Add(least)))
}

// closeWindow hands the window to the control if it is complete.
func (g *gate) closeWindow(now clock.Instant) {
	w := g.read(now).since(g.begun)
	least, most, ends := g.control.Need()
	if w.Ends > 0 {
		g.lastUsed = min(now, g.overdue)
	}
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
	g.moveThreshold(now)
	g.beginWindow(now)
	g.apply(now)
}

// moveThreshold has the threshold divide calls into as many as pass and those that do not,
// while more come than can pass.
func (g *gate) moveThreshold(now clock.Instant) {
	active := g.shed.Load().Active()
	switch {
	case !active && g.room.over():
		g.share = 1
		g.shed.Start(now)
	case active && g.room.calm():
		g.shed.Stop()
		return
	case !active || now.Sub(g.shedAt.at) < moveEvery:
		return
	}
	after := g.read(now)
	total, _ := g.shed.Totals()
	passed, blocked := float64((after.ends-g.shedAt.ends)&endsMask), float64(total-g.refused)
	g.shedAt, g.refused = after, total
	if !active || passed+blocked == 0 {
		return
	}
	g.share += (passed/(passed+blocked) - g.share) / 2
	g.shed.Move(now, passingShare*g.share)
}

const (
	// moveEvery is the least time between moves of the threshold.
	moveEvery = 500 * time.Millisecond

	// passingShare is how many calls are above the threshold, of those that can pass. If
	// all were, they would have to wait for each other.
	passingShare = 0.9
)

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
