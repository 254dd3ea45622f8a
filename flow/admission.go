package flow

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Admission is one call that may have to wait in queues of a [Chain]: what it has taken,
// and where it waits. It never waits itself: Poll says whether the call still has to. The
// rules may change meanwhile, so each method gets the chain that is in force. The zero
// value with Tokens has taken nothing. It belongs to one goroutine.
type Admission struct {
	Tokens   int32
	Priority rule.Priority
	NoWait   bool // refused instead of waiting

	granted    grants           // by queues
	places     []admissionPlace // in queues, while it waits to be granted passage by all of them
	refusedBy  *Queue           // the queue that ended its wait, until Refused has reported it
	taken      *Chain           // whose windows have given tokens, at takenAt; or nil
	takenAt    clock.Instant
	waiting    bool
	since      clock.Instant // when the wait began
	freed      clock.Instant // when the rule of a queue that it waited in was last removed
	promisedBy *Chain        // whose windows have promised it tokens
	queue      queueRule     // in which waiter is; its queue is nil when it is in none
	waiter     *Waiter
}

// grant is a turn that has come due, with the queue that granted it and the
// version of the rule under which it was asked for.
type grant struct {
	queueRule
	turn   Turn
	waited bool // for it
}

// admissionPlace is the place of a call in one of several queues, with the version of
// the rule under which it was taken.
type admissionPlace struct {
	queueRule
	queuePlace
}

// Acquire takes tokens of every rule at now (Pass), or says why it cannot. Block: the rule
// of the index which refuses; retryAfter is the time until the call can pass all rules.
// Wait: call [Admission.Join]. Stale: see [Chain.Take]. It keeps what queues have granted.
// Patience is how long the call can wait.
func (a *Admission) Acquire(
	c *Chain, now clock.Instant, patience time.Duration,
) (which int, retryAfter time.Duration, decision rule.Decision) {
	if which, retryAfter, decision = a.acquireQueues(c, now, patience); decision != rule.Pass {
		return which, retryAfter, decision
	}
	switch which, decision = c.Take(now, a.Tokens); decision {
	case rule.Pass:
		a.taken, a.takenAt = c, now
	case rule.Block:
		retryAfter = a.retryWindow(c, which, now, patience)
	}
	return which, retryAfter, decision
}

// retryWindow returns after how long a call that a window refuses can pass.
func (a *Admission) retryWindow(c *Chain, which int, now clock.Instant, patience time.Duration) time.Duration {
	wait := c.windows[which-len(c.queues)].window.RetryAfter(now, a.Tokens)
	return c.longest(which, wait, a.blocked(now, patience))
}

// retryQueue returns when a call can pass that a queue refuses with a turn that is too late.
func (a *Admission) retryQueue(c *Chain, which int, turn Turn, now clock.Instant, patience time.Duration) time.Duration {
	wait := c.queues[which].compiled.RetryAfter(turn, now, patience)
	return c.longest(which, wait, a.blocked(now, patience))
}

func (a *Admission) blocked(now clock.Instant, patience time.Duration) *blockedCall {
	return &blockedCall{now: now, tokens: a.Tokens, priority: a.Priority, patience: patience, has: a}
}

// RetryAfter returns how long it takes until the call passes all rules, for one that
// something else refuses.
func (a *Admission) RetryAfter(c *Chain, now clock.Instant, patience time.Duration) time.Duration {
	return c.longest(-1, 0, a.blocked(now, patience))
}

// acquireQueues has every queue grant the call passage. Pass: each has; Wait: it may be
// granted if the call joins.
func (a *Admission) acquireQueues(
	c *Chain, now clock.Instant, patience time.Duration,
) (which int, retryAfter time.Duration, decision rule.Decision) {
	switch {
	case len(c.queues) == 0:
		a.leaveQueues(now) // that were there
		return 0, 0, rule.Pass
	case len(c.queues) > 1 || len(a.places) > 0:
		return a.acquireSeveral(c, now, patience)
	}
	a.leaveQueues(now) // others
	q := &c.queues[0]
	if a.isGranted(q, now) {
		return 0, 0, rule.Pass
	}
	turn, decision := a.tryQueue(c, q, now)
	switch decision {
	case rule.Pass:
		a.granted.add(grant{*q, turn, false})
	case rule.Block:
		retryAfter = a.retryQueue(c, 0, turn, now, patience)
	case rule.Wait:
		return a.mayJoin(c, 0, turn, now, patience)
	}
	return 0, retryAfter, decision
}

// tryQueue asks a queue to let the call pass at now, unless a window is full: then it
// says Wait instead, with the turn that the call would get.
func (a *Admission) tryQueue(c *Chain, q *queueRule, now clock.Instant) (Turn, rule.Decision) {
	if c.fullWindow(now, a.Tokens) < 0 {
		return q.queue.take(q.compiled, now, a.Tokens, a.Priority, q.compiled.rule.MaxWait)
	}
	turn, decision := q.queue.expect(q.compiled, now, a.Tokens, a.Priority, endless)
	if decision == rule.Pass {
		decision = rule.Wait
	}
	return turn, decision
}

// mayJoin says Wait to a call that is to join a queue which lets it pass at the instant
// of the turn, unless a window will refuse it then, or it does not want to wait.
func (a *Admission) mayJoin(
	c *Chain, which int, turn Turn, now clock.Instant, patience time.Duration,
) (int, time.Duration, rule.Decision) {
	if full := c.fullAt(now, turn.at, a.Tokens); full >= 0 {
		full += len(c.queues)
		return full, a.retryWindow(c, full, now, patience), rule.Block
	}
	if a.NoWait {
		return which, a.retryQueue(c, which, turn, now, 0), rule.Block
	}
	return which, 0, rule.Wait
}

// isGranted says whether the queue has granted the call passage under the rule. What an
// earlier version granted does not count, unless the call has waited for it and the
// rule still lets calls through: then it is given back.
func (a *Admission) isGranted(q *queueRule, now clock.Instant) bool {
	g := a.granted.of(q.queue)
	if g == nil {
		return false
	}
	if g.compiled == q.compiled || g.waited && q.compiled.rule.Limit > 0 {
		return true
	}
	q.queue.GiveBack(now, g.turn)
	a.granted.remove(g)
	return false
}

// acquireSeveral is acquireQueues for a call that several queues apply to, or did when
// it began to wait: all of them grant it passage at one instant, or none does.
func (a *Admission) acquireSeveral(
	c *Chain, now clock.Instant, patience time.Duration,
) (which int, retryAfter time.Duration, decision rule.Decision) {
	if a.isGrantedByAll(c, now) {
		return 0, 0, rule.Pass
	}
	if a.keepPlacesOf(c, now); len(a.places) > 0 {
		return 0, 0, rule.Wait // and joins the rest
	}
	which, retryAfter, decision = a.tryAll(c, now, patience)
	if decision == rule.Pass {
		a.leaveQueues(now)
	}
	return which, retryAfter, decision
}

// isGrantedByAll says whether every queue has granted the call passage. If one has not,
// none has: a grant counts for one instant only.
func (a *Admission) isGrantedByAll(c *Chain, now clock.Instant) bool {
	all := a.granted.count > 0
	for i := range c.queues {
		all = all && a.isGranted(&c.queues[i], now)
	}
	if !all {
		a.granted.giveBack(now)
	}
	return all
}

// tryAll takes of all queues if that can be done now.
func (a *Admission) tryAll(
	c *Chain, now clock.Instant, patience time.Duration,
) (which int, retryAfter time.Duration, decision rule.Decision) {
	var few [len(a.granted.few)]Turn
	turns := few[:]
	if len(c.queues) > len(turns) {
		turns = make([]Turn, len(c.queues))
	}
	joint := a.jointPatience(c, now, patience)
	isFull := c.fullWindow(now, a.Tokens) >= 0
	var turn Turn
	if isFull {
		which, turn, decision = expectAll(c.queues, now, a.Tokens, a.Priority, joint)
	} else {
		which, turn, decision = takeAll(c.queues, now, a.Tokens, a.Priority, joint, turns)
	}
	switch {
	case decision == rule.Block:
		return which, a.retryQueue(c, which, turn, now, joint), rule.Block
	case decision == rule.Stale:
		return which, 0, rule.Stale
	case decision == rule.Pass && !isFull:
		for i, q := range c.queues {
			a.granted.add(grant{q, turns[i], false})
		}
		return 0, 0, rule.Pass
	}
	return a.mayJoin(c, which, turn, now, patience)
}

// Join has the call wait that Acquire said Wait to. Wait: it waits, see
// [Admission.Poll]. Pass: it need not; Acquire is to be called again. Block and Stale
// as for Acquire. Wake is called when Poll should be, perhaps under locks.
func (a *Admission) Join(
	c *Chain, now clock.Instant, patience time.Duration, wake func(),
) (which int, retryAfter time.Duration, decision rule.Decision) {
	if len(c.queues) > 1 || len(a.places) > 0 {
		return a.joinSeveral(c, now, patience, wake)
	}
	q := c.queues[0]
	waiter := NewWaiter(wake).WithPriority(a.Priority)
	turn, decision := q.queue.Join(q.compiled, now, a.Tokens, patience, waiter)
	switch decision {
	case rule.Pass:
		a.granted.add(grant{q, turn, false})
	case rule.Block:
		retryAfter = a.retryQueue(c, 0, turn, now, patience)
	case rule.Wait:
		a.beginWait(c, now)
		a.queue, a.waiter = q, waiter
	}
	return 0, retryAfter, decision
}

// joinSeveral joins the queues in their order, until the call has to wait in one. In
// those before it keeps its place. Once it is the first in all of them it passes them,
// if its time has come.
func (a *Admission) joinSeveral(
	c *Chain, now clock.Instant, patience time.Duration, wake func(),
) (which int, retryAfter time.Duration, decision rule.Decision) {
	if !a.waiting {
		a.beginWait(c, now)
	}
	for i := len(a.places); i < len(c.queues); i++ {
		q := c.queues[i]
		joint := a.jointPatience(c, now, patience)
		place, turn, decision := q.queue.takePlace(q.compiled, now, a.since, a.Tokens, joint, NewWaiter(wake).WithPriority(a.Priority))
		switch decision {
		case rule.Block:
			return i, a.retryQueue(c, i, turn, now, joint), rule.Block
		case rule.Stale:
			return i, 0, rule.Stale
		}
		a.places = append(a.places, admissionPlace{q, place})
		if decision == rule.Wait {
			for _, before := range a.places[:i] {
				before.expect(turn.at)
			}
			return i, 0, rule.Wait
		}
	}
	return a.passSeveral(c, now)
}

// passSeveral passes the queues, in all of which the call has a place.
func (a *Admission) passSeveral(c *Chain, now clock.Instant) (which int, retryAfter time.Duration, decision rule.Decision) {
	places, turns := make([]queuePlace, len(a.places)), make([]Turn, len(a.places))
	for i, p := range a.places {
		places[i] = p.queuePlace
	}
	if passAll(c.queues, places, a.freed, now, turns) != rule.Pass {
		return 0, 0, rule.Wait
	}
	a.places = a.places[:0]
	a.leaveQueues(now)
	for i, q := range c.queues {
		a.granted.add(grant{q, turns[i], true})
	}
	return 0, 0, rule.Pass
}

// Poll tells whether the call still waits at now, and then after which time Poll is to
// be called again, if that is not 0 and the call was not woken before. When it waits no
// more, Acquire or Refused tells what has come of it.
func (a *Admission) Poll(now clock.Instant) (after time.Duration, waits bool) {
	if len(a.places) > 0 {
		return a.pollPlaces(now)
	}
	q := a.queue
	if q.queue == nil {
		return 0, false
	}
	turn, after, decision := q.queue.Poll(now, a.waiter)
	if decision == rule.Wait {
		return after, true
	}
	a.queue = queueRule{} // it is in the queue no longer
	a.leaveQueues(now)
	switch decision {
	case rule.Pass:
		a.granted.add(grant{q, turn, true})
	case rule.Block:
		a.refusedBy = q.queue
	}
	return 0, false
}

// pollPlaces tells whether a call that has places in queues still has to wait, and
// how long at the most before it looks again. A call that is refused by one of them has
// places in none; the place in one whose rule is gone is given up.
func (a *Admission) pollPlaces(now clock.Instant) (after time.Duration, waits bool) {
	for i, p := range a.places {
		left, decision := p.ready(now)
		switch decision {
		case rule.Block:
			a.refusedBy = p.queueRule.queue
			a.leaveQueues(now)
			return 0, false
		case rule.Stale: // what becomes of the others depends on the rules that are there now
			p.leave(now)
			a.places = slices.Delete(a.places, i, i+1)
			a.freed = now
			return 0, false
		case rule.Wait:
			if !waits || left < after {
				after = left
			}
			waits = true
		}
	}
	return after, waits
}

// Refused tells whether a queue has ended the wait, if its rule still is one for the
// call: then the rule of the index which refuses.
func (a *Admission) Refused(
	c *Chain, now clock.Instant, patience time.Duration,
) (which int, retryAfter time.Duration, refused bool) {
	queue := a.refusedBy
	if queue == nil {
		return 0, 0, false
	}
	a.refusedBy = nil
	if which = c.indexOf(queue); which < 0 {
		return 0, 0, false
	}
	wait := queue.retryAfter(now, a.Tokens, a.Priority, patience)
	return which, c.longest(which, wait, a.blocked(now, patience)), true
}

// keepPlacesOf gives up the places in queues that do not apply any more, and those
// behind one that applies now and did not before.
func (a *Admission) keepPlacesOf(c *Chain, now clock.Instant) {
	kept := a.places[:0]
	for _, p := range a.places {
		if c.indexOf(p.queueRule.queue) >= 0 {
			kept = append(kept, p)
		} else {
			p.leave(now)
		}
	}
	a.places = kept
	for i := range a.places {
		if a.places[i].queueRule.queue != c.queues[i].queue {
			a.leavePlaces(i, now)
			return
		}
		a.places[i].queueRule = c.queues[i]
	}
}

// leavePlaces gives up all places but the first so many.
func (a *Admission) leavePlaces(keep int, now clock.Instant) {
	for _, p := range a.places[min(keep, len(a.places)):] {
		p.leave(now)
	}
	a.places = a.places[:min(keep, len(a.places))]
}

// jointPatience is how long the call can go on waiting: none of its queues lets it wait
// for longer than the rule's MaxWait altogether.
func (a *Admission) jointPatience(c *Chain, now clock.Instant, patience time.Duration) time.Duration {
	if a.waiting {
		return min(patience, c.patience(endless)-now.Sub(a.since))
	}
	return c.patience(patience)
}

func (a *Admission) beginWait(c *Chain, now clock.Instant) {
	a.waiting, a.since, a.promisedBy = true, now, c
	c.promise(a.Tokens)
}

// LeaveRules ends the wait for rules that do not apply any more: the call gives up its places in the queues
// of those for which gone returns true. It returns whether it had some, and then has to ask again.
func (a *Admission) LeaveRules(now clock.Instant, gone func(rule.Key) bool) (left bool) {
	if q := a.queue; q.queue != nil && gone(rule.Key{Kind: kindName, Name: q.compiled.rule.Name}) {
		a.leaveQueues(now)
		left = true
	}
	for i, p := range slices.Backward(a.places) {
		if gone(rule.Key{Kind: kindName, Name: p.compiled.rule.Name}) {
			p.leave(now)
			a.places = slices.Delete(a.places, i, i+1)
			a.freed, left = now, true
		}
	}
	return left
}

// leaveQueues ends the wait, if the call waits, whether or not its time has come.
func (a *Admission) leaveQueues(now clock.Instant) {
	a.leavePlaces(0, now)
	if q := a.queue.queue; q != nil {
		if turn, left := q.Leave(now, a.waiter); !left {
			q.GiveBack(now, turn)
		}
		a.queue = queueRule{}
	}
	if a.waiting {
		a.promisedBy.promise(-a.Tokens)
		a.waiting = false
	}
}

// GiveBack returns what windows have given; what queues have granted stays.
func (a *Admission) GiveBack() {
	if a.taken != nil {
		a.taken.GiveBack(a.takenAt, a.Tokens)
		a.taken = nil
	}
}

// Leave gives up at now: the call leaves its queues, and all that it has taken is given
// back.
func (a *Admission) Leave(now clock.Instant) {
	a.leaveQueues(now)
	a.GiveBack()
	a.granted.giveBack(now)
}

// Granted returns the instant at which the first of the queues let the call pass, now
// if there is none.
func (a *Admission) Granted(now clock.Instant) clock.Instant {
	for i := range a.granted.count {
		now = min(now, a.granted.at(i).turn.at)
	}
	return now
}

// hasIn says whether the queue has granted the call passage, or it has a place in it.
func (a *Admission) hasIn(queue *Queue) bool {
	return a.granted.of(queue) != nil ||
		slices.ContainsFunc(a.places, func(p admissionPlace) bool { return p.queueRule.queue == queue })
}

// grants are those of one call. The first few are kept in place, so that a call that
// need not wait allocates nothing.
type grants struct {
	few   [4]grant
	more  []grant
	count int
}

func (g *grants) at(i int) *grant {
	if i < len(g.few) {
		return &g.few[i]
	}
	return &g.more[i-len(g.few)]
}

func (g *grants) add(next grant) {
	if g.count >= len(g.few) {
		g.more = append(g.more[:g.count-len(g.few)], grant{})
	}
	g.count++
	*g.at(g.count - 1) = next
}

// of returns the grant of that queue, nil if there is none.
func (g *grants) of(queue *Queue) *grant {
	for i := range g.count {
		if g.at(i).queue == queue {
			return g.at(i)
		}
	}
	return nil
}

// remove takes a grant out.
func (g *grants) remove(which *grant) {
	g.count--
	*which = *g.at(g.count)
}

// giveBack returns all of them to their queues, the last first.
func (g *grants) giveBack(now clock.Instant) {
	for i := g.count - 1; i >= 0; i-- {
		g.at(i).queue.GiveBack(now, g.at(i).turn)
	}
	g.count = 0
}
