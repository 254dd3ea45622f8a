package flow

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// What tests of algorithms and of full windows use.
type (
	Compiled    = compiledRule
	LimiterKind = limiterKind
	Queue       = queue
	RuleLimiter = ruleLimiter
	Turn        = turn
	Waiter      = waiter
	Window      = window
)

func NewQueue(r *compiledRule, now clock.Instant) *queue   { return newQueue(r, now) }
func NewWindow(r *compiledRule, now clock.Instant) *window { return newWindow(r, now) }

// NewWaiter returns a waiter that has begun to wait. It can be in a queue once.
func NewWaiter(wake func()) *waiter {
	w := &waiter{}
	w.Again(wake)
	return w
}

// Again has a waiter begin to wait again that has left its queue.
func (w *waiter) Again(wake func()) { w.Begin(nil, wake) }

// WithPriority returns the waiter, which is not in a queue, for calls of a priority. It has
// that of normal calls at first.
func (w *waiter) WithPriority(p rule.Priority) *waiter {
	w.priority = p
	return w
}

// Poll tells how a waiter stands, and returns its turn.
func (q *queue) Poll(now clock.Instant, w *waiter) (turn, time.Duration, rule.Decision) {
	after := q.look(now, w)
	if w.Waits() {
		return turn{}, after, rule.Wait
	}
	if _, _, decision := w.Poll(now); decision != rule.Pass {
		return turn{}, 0, decision
	}
	return w.turn, 0, rule.Pass
}

// Leave has a waiter give up. It returns false if its time had come first: then the turn, which is not given
// back, is valid.
func (q *queue) Leave(now clock.Instant, w *waiter) (turn, bool) {
	q.withdraw(now, w)
	_, _, decision := w.Poll(now)
	return w.turn, decision != rule.Pass
}

// Compile compiles a rule, whose windows follow no wall clock.
func Compile(rule Rule, version uint64) *compiledRule {
	r := compile(&rule, version)
	if r.windows != nil {
		r.windows.Keep(nil, 0, nil)
	}
	return r
}

// The bounds of fields.
const (
	MaxMaxWait = maxMaxWait
	MaxPeriod  = maxPeriod
)

const (
	WindowLimiter   = windowLimiter
	ThrottleLimiter = throttleLimiter
	BucketLimiter   = bucketLimiter
)

func (r Rule) LimiterKind() LimiterKind { return r.limiterKind() }

// Expect says what Join would say to such a call, and takes nothing.
func (q *queue) Expect(r *compiledRule, now clock.Instant, n int32, patience time.Duration) (turn, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, &caller{}, min(patience, r.rule.MaxWait))
	return turn{at: passAt}, decision
}

// LaterThan returns when the open bucket began; 0 if that was not after now.
func (w *window) LaterThan(now clock.Instant) clock.Instant { return w.laterThan(now) }

func (w *window) FullUntil(r *compiledRule, now clock.Instant, n int32) clock.Instant {
	return w.fullUntil(r, now, n)
}

// CheckWaiters returns what is wrong with the queue of those who wait, of whom there should
// be so many.
func (q *queue) CheckWaiters(want int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var levels [len(q.waiters.levels)]levelCount
	var total int64
	var count int
	hasHead := false
	for w := range q.waiters.order.All() {
		if !w.Waits() {
			return fmt.Errorf("waiter %d: in the queue, but it does not wait", count)
		}
		levels[w.level()].add(1, int64(w.tokens))
		total += int64(w.tokens)
		hasHead = hasHead || w == q.waiters.head
		count++
	}
	head := q.waiters.head
	if s, ok := q.schedule.(*leakyBucket); ok && count > 0 && head.turn.at <= s.lastPass.at {
		return fmt.Errorf("the head does not pass after the last one")
	}
	switch {
	case hasHead != (count > 0):
		return fmt.Errorf("the head is not one of the %d that wait", count)
	case levels != q.waiters.levels || total != q.waiters.total:
		return fmt.Errorf("%d tokens wait, %v by levels, counted as %d, %v", total, levels, q.waiters.total, q.waiters.levels)
	case !q.waiters.mixed && count > 0 && levels[head.level()].calls != int64(count):
		return fmt.Errorf("calls of several levels wait, which the queue does not know")
	case count != want:
		return fmt.Errorf("%d wait, not %d", count, want)
	case count != len(q.waiters.inOrder()):
		return fmt.Errorf("%d wait, %d are in order", count, len(q.waiters.inOrder()))
	}
	return nil
}

// Tokens returns how many tokens the ticket took.
func (r turn) Tokens() int32 { return r.tokens }

// Logged returns how many entries the window keeps of what has passed, for other
// shapes of its rule.
func (w *window) Logged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log == nil {
		return 0
	}
	return cap(w.log.entries)
}

func (w *window) Follow(before predecessor) { w.follow(before) }

func (q *queue) Follow(before predecessor) { q.follow(before) }

// The sizes of what each window has.
const (
	SizeOfCompiled = unsafe.Sizeof(compiledRule{})
	SizeOfWindow   = unsafe.Sizeof(window{})
)

// Take is take for a call of normal priority.
func (q *queue) Take(r *compiledRule, now clock.Instant, n int32) (turn, rule.Decision) {
	return q.take(r, now, n, &caller{})
}

// Reserve is book without the turn.
func (q *queue) Reserve(r *compiledRule, now clock.Instant, n int32) rule.Decision {
	_, decision := q.book(r, now, n)
	return decision
}

// Rule returns the rule that was compiled.
func (r *compiledRule) Rule() Rule { return *r.rule }

// Time returns when the call may pass; 0 if it never can, in a turn that comes
// with Block.
func (r turn) Time() clock.Instant { return r.at }
