package flow

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// queue enforces a rule that may make calls wait: a throttle, which spaces calls evenly, or
// a token bucket. Calls of one priority are served first come, first served. Calls of
// higher priorities come first, except for one pass in eight.
//
// A queue computes when calls may pass. It does not wait itself: a call that has to
// wait gets a waiter, which is woken, and is looked after by queue.look. Queues are safe
// for concurrent use; one mutex guards each.
type queue struct {
	mu       sync.Mutex
	compiled *compiledRule
	schedule schedule
	retired  bool

	log     *passLog    // of a rule that counted in another way before; else nil
	before  predecessor // to take over from, with the first call; else nil
	waiters waiterList  // it is planned when the head passes
	turns   recentTurns
	tenants *tenantsOfQueue // nil until a version of the rule has some
}

// newQueue returns a queue that nothing has passed yet: the first call of a throttle
// may pass at once, a token bucket is full. If the rule warms up the resource is cold
// at now.
func newQueue(r *compiledRule, now clock.Instant) *queue {
	r = r.inForce()
	q := &queue{compiled: r, schedule: newSchedule(r, now)}
	q.waiters.order.ShareFairly(r.rule.remembered(), 0)
	return q
}

// take takes n tokens at now under a version of the rule, for a call of somebody.
// Pass: they are taken, by the turn. Wait: the call may pass later, see Join. Block:
// it would have to wait longer than the rule's MaxWait; the turn is for
// compiledRule.RetryAfter.
// Stale: there is a newer version of the rule, or the rule is gone.
func (q *queue) take(r *compiledRule, now clock.Instant, n int32, who *caller) (turn, rule.Decision) {
	q.mu.Lock()
	passAt, decision := q.plan(r, now, n, who, r.rule.MaxWait)
	turn := turn{at: passAt}
	switch decision {
	case rule.Pass:
		turn = q.grant(now, passAt, n)
		if q.waiters.head != nil {
			q.overtake(now)
		}
	case rule.Block, rule.Wait:
		q.schedule.delay(now, passAt, n)
	}
	q.mu.Unlock() // not deferred: 2 ns
	return turn, decision
}

// Join is Take for a call that can wait, for no longer than the rule's MaxWait nor
// patience. Wait: w, which has begun to wait, is in the queue.
func (q *queue) Join(r *compiledRule, now clock.Instant, n int32, patience time.Duration, w *waiter) (turn, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, &w.caller, min(patience, r.rule.MaxWait))
	switch decision {
	case rule.Pass:
		turn := q.grant(now, passAt, n)
		if q.waiters.head != nil {
			q.overtake(now)
		}
		return turn, rule.Pass
	case rule.Block:
		q.schedule.delay(now, passAt, n)
	case rule.Wait:
		q.schedule.delay(now, passAt, n)
		q.push(w, now, n)
	}
	return turn{at: passAt}, decision
}

// book takes n tokens for a call that does not wait for them, because its rule is a
// shadow: Pass if the call could pass within the rule's MaxWait; Block or Stale. Calls
// that still wait may pass at once. It returns what was granted or, with Block, would be.
func (q *queue) book(r *compiledRule, now clock.Instant, n int32) (turn, rule.Decision) {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, now, n, &caller{}, r.rule.MaxWait)
	switch {
	case decision == rule.Block || decision == rule.Stale:
		return turn{at: passAt}, decision
	case q.waiters.head != nil:
		q.admitAll(now)
		passAt, _ = q.schedule.next(now, n)
	}
	return q.grant(now, passAt, n), rule.Pass
}

// look ends the wait of a waiter if its time has come, or if a changed rule, or more important calls, would make
// it wait longer than it may. Otherwise it returns how long it takes until it can pass, if it is the first in the
// queue; else until it has waited for as long as it may, or 0 if it can pass before that. It is woken when it has
// become the first.
func (q *queue) look(now clock.Instant, w *waiter) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	switch {
	case !w.Waits():
		return 0
	case w == q.waiters.head:
		return q.untilHeadPasses(now)
	case !q.waiters.mixed:
		return 0
	}
	left := w.arrived.Add(q.compiled.rule.MaxWait).Sub(now)
	if left <= 0 { // what passes at this instant has passed
		q.refuse(w)
		return 0
	}
	return left
}

// withdraw takes a waiter that gives up at now out of the queue; those behind it move up. Before that, all calls
// pass whose time has come by now: it may be one of them.
func (q *queue) withdraw(now clock.Instant, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	if !w.Waits() {
		return
	}
	wasHead := w == q.waiters.head
	q.waiters.remove(w, false)
	w.End()
	if wasHead {
		q.promote(now)
	}
}

// GiveBack returns at now a turn that was not used after all; those behind move
// up. A token bucket gets its tokens back. What a throttle has granted can go to
// another call only as long as nothing later was granted.
func (q *queue) GiveBack(now clock.Instant, turn turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	if q.log != nil {
		q.log.giveBack(turn.at, int64(turn.tokens))
	}
	if q.schedule.takeBack(turn) {
		q.promote(now)
	}
}

// Adopt goes over to a newer version of the rule, by which the waiting calls pass from
// now on.
func (q *queue) Adopt(r *compiledRule, now clock.Instant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.adopt(r.inForce(), now)
}

// Retire ends the queue: its rule is gone. Waiting calls get Stale.
func (q *queue) Retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retired = true
	q.releaseAll()
}

// RetryAfter returns how long after now a call of n tokens that was refused
// could join the queue, if no other call comes and it can wait as long as the
// rule allows but no longer than patience; [rule.Never] when it cannot. The call has normal
// priority.
func (q *queue) RetryAfter(now clock.Instant, n int32, patience time.Duration) time.Duration {
	return q.retryRefused(now, n, &caller{}, patience)
}

// retryRefused is RetryAfter for a call of somebody.
func (q *queue) retryRefused(now clock.Instant, n int32, who *caller, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, _ := q.passTimeOf(now, n, who)
	return q.compiled.RetryAfter(turn{at: passAt}, now, patience)
}

// retryAfter is RetryAfter for a call that is not refused, perhaps: then it returns 0.
func (q *queue) retryAfter(r *compiledRule, c rule.Call, who *caller) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, decision := q.plan(r, c.Now, c.Tokens, who, r.rule.MaxWait)
	if decision != rule.Block {
		return 0
	}
	return r.RetryAfter(turn{at: passAt}, c.Now, endless)
}

// RetryAfter is queue.RetryAfter for a call that the queue refused at now, under this
// version of the rule and with that turn. It does not ask the queue again, which
// saves 15 ns.
func (r *compiledRule) RetryAfter(refused turn, now clock.Instant, patience time.Duration) time.Duration {
	if refused.at == 0 {
		return rule.Never
	}
	patience = max(0, min(patience, r.rule.MaxWait))
	return max(1, refused.at.Sub(now)-patience)
}

// used returns how many tokens a bucket lacks of being full, and how many it has then; 0 for other
// schedules, which do not tell.
func (q *queue) used(now clock.Instant) (tokens, capacity float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	if b, ok := q.schedule.(*tokenBucket); ok {
		capacity = b.compiled.rule.Burst
		return capacity - b.balance(now), capacity
	}
	return 0, 0
}

// Status returns the effective limit at now, in tokens per window; how many calls of
// one token that came now, one after the other, would pass within the rule's MaxWait;
// and how long it takes until more would if no other call comes, 0 if never, to within
// a nanosecond for each call that waits. Calls whose time has come by now pass; nothing
// else changes.
func (q *queue) Status(now clock.Instant) (limit float64, remaining int64, reset time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	return q.schedule.status(&q.waiters, now, q.compiled.rule.MaxWait)
}

// newSchedule returns the schedule of a queue that nothing has passed yet.
func newSchedule(r *compiledRule, now clock.Instant) schedule {
	switch {
	case r.rule.limiterKind() == throttleLimiter:
		return &leakyBucket{compiled: r, warmUp: newWarmUpState(r, now), lastPass: rounded{at: beforeAll}}
	case r.warmsUp():
		return newWarmingBucket(r, now, 1)
	}
	return newTokenBucket(r, now, 1)
}

// grant takes n tokens at now for a call that passes then, or at a later instant.
func (q *queue) grant(now, passAt clock.Instant, n int32) turn {
	turn := q.schedule.grant(now, passAt, n)
	q.turns.add(turn)
	if q.log != nil {
		q.log.add(passAt, int64(n))
		if len(q.log.entries) > max(q.log.most, minLog) {
			q.log.trim(now)
		}
	}
	return turn
}
