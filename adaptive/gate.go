package adaptive

import (
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

	mu         sync.Mutex // guards what follows
	queue      waiters
	queueLimit queueLimit
	advanced   clock.Instant // up to which queueLimit has the time
	control    *limit.Control
	limit      uint64
	begun      counts        // when the window began
	lastUsed   clock.Instant // about when a call ended last
	overdue    clock.Instant // when it has its greatest length
	fullAt     clock.Instant // since when the gate is full; meaningless while it is open
	fullTime   time.Duration // in the window, up to fullAt
	isFull     bool
	openedAt   clock.Instant   // since when it is open; meaningless while it is full
	turned     bool            // a call that found the gate full did not wait, and no other has waited since
	current    *latencyLimiter // the version in force
	retired    bool            // current is gone; a newer version may follow

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

	// preferred is the factor by which the limit of the queue is higher for calls that stand
	// above the threshold.
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
		g.queueLimit.advance(now.Sub(g.advanced), &g.queue.size)
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

// markFull has all calls take the lock. Calls that do not wait leave the gate open for
// the moment until the next one comes, in which waiting ones would have kept it full: if it
// is short, that time counts as full.
func (g *gate) markFull(now clock.Instant) {
	if !g.isFull {
		if open := now.Sub(g.openedAt); g.turned && open < g.queueLimit.longest/10 {
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
