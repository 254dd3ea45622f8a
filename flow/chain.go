package flow

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Chain is the flow rules that the calls of one resource, or of one origin there, have
// to pass: rules with queues, in which calls wait, before rules with windows,
// which count the instant of passing. A call passes all of them at one instant, or
// takes nothing.
//
// A chain without queues decides at once, by [Chain.Take]. With queues, [Chain.TryTake]
// decides on most calls; an [Admission] on those that may have to wait. The index of a rule
// counts queues first.
//
// A chain never changes. It is safe for concurrent use.
type Chain struct {
	queues  []queueRule
	windows []windowRule

	anyMayGiveBack bool          // one of the windows does
	fullLast       *atomic.Int32 // the window, counted from 1, that refused last; nil if there are not several
}

// Member is a rule of a chain.
type Member struct {
	Limiter *RuleLimiter

	// Shared is set if calls of other resources take from the limiter, too.
	Shared bool
}

// windowRule is a rule with a window in a chain.
type windowRule struct {
	compiled *Compiled
	window   *Window
	related  bool // the window counts the passes of another resource

	// shared: calls of other resources take from the window, too. So it may be asked
	// while one of them has tokens that it may give back.
	shared      bool
	mayGiveBack bool // it is shared and not the last that a call asks: a call may give back what it took
}

// NewChain returns the chain of these rules, which keep their order. Those with queues
// come first; they must have the same order in all chains.
func NewChain(members []Member) Chain {
	var c Chain
	for _, m := range members {
		l := m.Limiter
		if l.queue != nil {
			c.queues = append(c.queues, queueRule{l.queue, l.compiled})
		} else {
			c.windows = append(c.windows, windowRule{compiled: l.compiled, window: l.window, related: l.related, shared: m.Shared})
		}
	}
	if len(c.windows) > 1 {
		c.fullLast = new(atomic.Int32)
	}
	for i := range max(0, len(c.windows)-1) {
		if r := &c.windows[i]; r.shared && !r.related {
			r.mayGiveBack, c.anyMayGiveBack = true, true
		}
	}
	return c
}

// Len returns how many rules there are.
func (c *Chain) Len() int { return len(c.queues) + len(c.windows) }

// CanWait says whether calls can wait for one of the rules.
func (c *Chain) CanWait() bool { return len(c.queues) > 0 }

// Take takes n tokens of every window at now. With Block or Stale it has taken nothing, and
// which is the index of the rule that said so.
func (c *Chain) Take(now clock.Instant, n int32) (which int, decision rule.Decision) {
	i, decision := c.tryWindows(now, n)
	if decision == rule.Block && c.windows[i].shared {
		i, decision = c.tryAgain(i, now, n)
	}
	return len(c.queues) + i, decision
}

func (c *Chain) tryWindows(now clock.Instant, n int32) (i int, decision rule.Decision) {
	switch len(c.windows) {
	case 0:
		return 0, rule.Pass
	case 1:
		return 0, c.windows[0].take(now, n)
	}
	return c.takeInOrder(now, n)
}

func (r *windowRule) take(now clock.Instant, n int32) rule.Decision {
	if r.related {
		return r.window.Check(r.compiled, now, n)
	}
	return r.window.Take(r.compiled, now, n)
}

// tryAgain tries to take from the windows, of which one was full, until it is sure that
// nothing remained but tokens that another call gives back.
func (c *Chain) tryAgain(i int, now clock.Instant, n int32) (int, rule.Decision) {
	decision := rule.Block
	for range maxTries {
		r := &c.windows[i]
		if decision != rule.Block || !r.shared || r.window.reallyFull(r.compiled, now, n) {
			break
		}
		runtime.Gosched()
		i, decision = c.tryWindows(now, n)
	}
	return i, decision
}

// maxTries is how often a call that would be refused looks again while others hold
// tokens that they may give back: until those have gone on, unless the scheduler keeps
// one of them from it for very long.
const maxTries = 1000

// takeInOrder takes from the windows one after the other, after a look at the one that
// was full last: what a call takes and has to give back, others may miss meanwhile.
func (c *Chain) takeInOrder(now clock.Instant, n int32) (int, rule.Decision) {
	if last := int(c.fullLast.Load()) - 1; last >= 0 {
		r := &c.windows[last]
		if r.window.Check(r.compiled, now, n) == rule.Block {
			if first := c.fullWindow(now, n); first >= 0 {
				last = first
			}
			return last, rule.Block
		}
	}
	for i := range c.windows {
		r := &c.windows[i]
		if r.mayGiveBack {
			r.window.beginPending()
		}
		if decision := r.take(now, n); decision != rule.Pass {
			c.giveBackWindows(i, now, n)
			c.endPending(i + 1)
			if decision == rule.Block {
				c.fullLast.Store(int32(i + 1))
			}
			return i, decision
		}
	}
	c.endPending(len(c.windows))
	return 0, rule.Pass
}

// endPending ends what takeInOrder has begun on the first count windows: the call has
// nothing of them that it may still give back.
func (c *Chain) endPending(count int) {
	if !c.anyMayGiveBack {
		return
	}
	for i := range c.windows[:count] {
		if r := &c.windows[i]; r.mayGiveBack {
			r.window.endPending()
		}
	}
}

// GiveBack returns n tokens to every window, which Take took at now.
func (c *Chain) GiveBack(now clock.Instant, n int32) { c.giveBackWindows(len(c.windows), now, n) }

func (c *Chain) giveBackWindows(count int, now clock.Instant, n int32) {
	for i := range c.windows[:count] {
		if r := &c.windows[i]; !r.related {
			r.window.GiveBack(r.compiled, now, n)
		}
	}
}

// Settle adds tokens at now to what a call took of every rule, or gives some back if
// the number is negative. The call passed at start, and took of queues at the instant
// queued, or later. See [RuleLimiter.Settle].
func (c *Chain) Settle(now, start, queued clock.Instant, tokens int32) {
	for i := range c.queues {
		c.queues[i].queue.settle(now, queued, tokens)
	}
	for i := range c.windows {
		if r := &c.windows[i]; !r.related {
			r.window.settleTokens(r.compiled, now, start, tokens)
		}
	}
}

// LaterThan returns an instant that is not before now, nor before what the windows have
// seen.
func (c *Chain) LaterThan(now clock.Instant) clock.Instant {
	for i := range c.windows {
		now = max(now, c.windows[i].window.Opened())
	}
	return now
}

// fullWindow returns the first window in which less than n tokens remain at now; -1 if
// there is none.
func (c *Chain) fullWindow(now clock.Instant, n int32) int {
	for i := range c.windows {
		if r := &c.windows[i]; r.window.Check(r.compiled, now, n) == rule.Block {
			return i
		}
	}
	return -1
}

// fullAt returns the first window in which less than n tokens remain at now, beside
// those promised to calls that wait, and will remain at a later instant, whatever comes
// or does not come until then; -1 if there is none.
func (c *Chain) fullAt(now, later clock.Instant, n int32) int {
	for i := range c.windows {
		r := &c.windows[i]
		wanted := n
		if !r.compiled.leaves(now, later) { // else what is promised may have come and gone by then
			wanted = r.wanted(n)
		}
		if r.window.Check(r.compiled, now, wanted) == rule.Block &&
			r.window.fullUntil(r.compiled, now, wanted) > later &&
			(!r.shared || r.window.reallyFull(r.compiled, now, n)) {
			return i
		}
	}
	return -1
}

// wanted returns n and the tokens promised to calls that wait.
func (r *windowRule) wanted(n int32) int32 {
	if !r.promises() {
		return n
	}
	return int32(min(int64(n)+max(0, r.window.promised.Load()), math.MaxInt32))
}

// promises says whether the window counts the tokens that waiting calls will take.
func (r *windowRule) promises() bool { return !r.shared && !r.related }

// promise notes that a call that waits will take n tokens of the windows, or, if n is
// negative, that it does not wait any longer.
func (c *Chain) promise(n int32) {
	for i := range c.windows {
		if r := &c.windows[i]; r.promises() {
			r.window.promised.Add(int64(n))
		}
	}
}

// RetryAfter returns how long it takes until a call passes all rules if no other call
// comes, for a call without queues that the rule of the index which refused, or -1 if
// none did: the longest of what those demand that would refuse it now.
func (c *Chain) RetryAfter(which int, now clock.Instant, n int32, p rule.Priority, patience time.Duration) time.Duration {
	if which >= 0 && len(c.windows) == 1 && len(c.queues) == 0 {
		return c.windows[0].window.RetryAfter(now, n)
	}
	wait := time.Duration(0)
	if which >= 0 {
		wait = c.windows[which-len(c.queues)].window.RetryAfter(now, n)
	}
	return c.longest(which, wait, &blockedCall{now: now, tokens: n, priority: p, patience: patience})
}

// RetryAfterTurn is RetryAfter for a call that TryTake refused
// perhaps with a turn that is too late.
func (c *Chain) RetryAfterTurn(
	which int, turn Turn, now clock.Instant, n int32, p rule.Priority, patience time.Duration,
) time.Duration {
	switch {
	case len(c.queues) == 0:
		return c.RetryAfter(which, now, n, p, patience)
	case c.Len() == 1:
		return c.queues[which].compiled.RetryAfter(turn, now, patience)
	case which >= len(c.queues):
		return c.RetryAfter(which, now, n, p, patience)
	}
	if len(c.queues) > 1 {
		patience = c.patience(patience)
	}
	wait := c.queues[which].compiled.RetryAfter(turn, now, patience)
	return c.longest(which, wait, &blockedCall{now: now, tokens: n, priority: p, patience: patience})
}

// blockedCall is a call that one of the rules refuses.
type blockedCall struct {
	now      clock.Instant
	tokens   int32
	priority rule.Priority
	patience time.Duration
	has      *Admission // what it has already; or nil
}

// longest returns the longest wait that a rule demands which would refuse the call, one
// of which demands the given wait.
func (c *Chain) longest(which int, wait time.Duration, r *blockedCall) time.Duration {
	for i, q := range c.queues {
		if i == which || r.has != nil && r.has.hasIn(q.queue) {
			continue
		}
		if turn, decision := q.queue.expect(q.compiled, r.now, r.tokens, r.priority, r.patience); decision == rule.Block {
			wait = max(wait, q.compiled.RetryAfter(turn, r.now, r.patience))
		}
	}
	for i := range c.windows {
		w := &c.windows[i]
		if len(c.queues)+i != which && w.window.Check(w.compiled, r.now, r.tokens) == rule.Block {
			wait = max(wait, w.window.RetryAfter(r.now, r.tokens))
		}
	}
	return wait
}

// patience returns how long a call that can wait for so long may wait for its queues.
func (c *Chain) patience(patience time.Duration) time.Duration {
	for i := range c.queues {
		patience = min(patience, c.queues[i].compiled.rule.MaxWait)
	}
	return patience
}

func (c *Chain) indexOf(queue *Queue) int {
	for i := range c.queues {
		if c.queues[i].queue == queue {
			return i
		}
	}
	return -1
}

// Turns are what TryTake gets of the queues of one call. The zero value has nothing.
type Turns struct{ list [4]Turn }

// TryTake takes n tokens of every rule at now, for a call that has to wait for none. Its
// priority matters where others wait.
// Pass: all is taken; the turn is for [Chain.GiveBackAll], as is what is put into
// reserved. Block: the rule of the index which refuses, see
// [Chain.RetryAfterTurn]. Wait: the call may be able to wait, which an
// [Admission] finds out. Stale: see [Chain.Take]. With these nothing is taken.
func (c *Chain) TryTake(
	now clock.Instant, n int32, p rule.Priority, noWait bool, reserved *Turns,
) (turn Turn, which int, decision rule.Decision) {
	switch len(c.queues) {
	case 0:
		which, decision = c.Take(now, n)
		return Turn{}, which, decision
	case 1:
		return c.tryTakeOne(now, n, p, noWait)
	}
	return c.tryTakeAll(now, n, p, noWait, reserved)
}

// tryTakeOne takes n tokens of every rule of a chain with one queue at now, for a call
// that has to wait for none. Pass: all is taken; the turn is for [Chain.GiveBackAll].
// Block: the rule of the index which refuses, see [Chain.RetryAfterTurn]. Wait: the
// call may be able to wait, which an [Admission] finds out; nothing is taken.
func (c *Chain) tryTakeOne(now clock.Instant, n int32, p rule.Priority, noWait bool) (turn Turn, which int, decision rule.Decision) {
	q := &c.queues[0]
	if len(c.windows) > 0 && c.fullWindow(now, n) >= 0 {
		return c.refuseOrWait(q, now, n, p)
	}
	maxWait := q.compiled.rule.MaxWait
	if noWait {
		maxWait = 0
	}
	turn, decision = q.queue.take(q.compiled, now, n, p, maxWait)
	if decision == rule.Pass && len(c.windows) > 0 {
		if _, said := c.Take(now, n); said != rule.Pass {
			q.queue.GiveBack(now, turn)
			return Turn{}, 0, rule.Wait
		}
	}
	return turn, 0, decision
}

// refuseOrWait decides on a call while a window is full: it is refused unless tokens may
// remain when the queue would let it pass.
func (c *Chain) refuseOrWait(q *queueRule, now clock.Instant, n int32, p rule.Priority) (turn Turn, which int, decision rule.Decision) {
	turn, decision = q.queue.expect(q.compiled, now, n, p, endless)
	if decision == rule.Pass || decision == rule.Wait {
		if full := c.fullAt(now, turn.at, n); full >= 0 {
			return turn, 1 + full, rule.Block
		}
		decision = rule.Wait
	}
	return turn, 0, decision
}

// tryTakeAll is tryTakeOne for a chain with several queues. What they give is put into
// reserved. If there are more than reserved has space for, it says Wait.
func (c *Chain) tryTakeAll(
	now clock.Instant, n int32, p rule.Priority, noWait bool, reserved *Turns,
) (turn Turn, which int, decision rule.Decision) {
	if len(c.queues) > len(reserved.list) || c.fullWindow(now, n) >= 0 {
		return Turn{}, 0, rule.Wait
	}
	patience := endless
	if noWait {
		patience = 0
	}
	which, turn, decision = takeAll(c.queues, now, n, p, patience, reserved.list[:])
	if decision == rule.Pass {
		if _, said := c.Take(now, n); said != rule.Pass {
			c.giveBackReserved(now, Turn{}, reserved)
			return Turn{}, 0, rule.Wait
		}
	}
	return turn, which, decision
}

// GiveBackAll returns what TryTake took at now.
func (c *Chain) GiveBackAll(now clock.Instant, n int32, turn Turn, reserved *Turns) {
	c.GiveBack(now, n)
	c.giveBackReserved(now, turn, reserved)
}

func (c *Chain) giveBackReserved(now clock.Instant, turn Turn, reserved *Turns) {
	if len(c.queues) == 1 {
		c.queues[0].queue.GiveBack(now, turn)
		return
	}
	for i, q := range slices.Backward(c.queues) {
		q.queue.GiveBack(now, reserved.list[i])
	}
}

// endless is the patience of a call whose context has no deadline.
const endless = time.Duration(math.MaxInt64)
