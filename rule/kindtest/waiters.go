package kindtest

import (
	"slices"
	"time"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// line is calls that wait in a queue whose places are taken.
type line struct {
	queue   rule.Queue
	held    []rule.Ticket // of calls under way
	waiters []rule.Waiter // in the order in which they came
	woken   []int         // how often each was woken
}

// waiting returns the nth call that waits in tests. They have one value, unless they wait for something else than each
// other.
func (f *fixture) waiting(n int) rule.Call {
	if f.of.Release == nil {
		return f.call(1)
	}
	return f.call(n + 1)
}

// line lets calls take all there is, and others wait. It skips the test if no call waits.
func (f *fixture) line(waiting int, p rule.Patience) *line {
	f.Helper()
	queue, ok := f.limiter().(rule.Queue)
	if !ok {
		f.Skip("the limiter has no queue")
	}
	q := &line{queue: queue, held: f.exhaust(queue, 1, max(0, f.of.Passes)+1), woken: make([]int, waiting)}
	for n := range waiting {
		if _, decision := f.acquire(queue, f.waiting(n)); decision != rule.Wait {
			f.Skip("no call, or not as many, may wait")
		}
		p.Wake = func() { q.woken[n]++ }
		waiter, ticket, decision := queue.Join(f.waiting(n), p)
		switch decision {
		case rule.Wait:
			q.waiters = append(q.waiters, waiter)
		case rule.Pass:
			f.Errorf("Join lets a call pass to which Acquire has just said Wait, though nothing was given back")
			q.held = append(q.held, ticket)
		case rule.Block:
			f.Skip("no call, or not as many, may wait so")
		default:
			f.Fatalf("Join says %d, which it may not", decision)
		}
	}
	if len(q.waiters) < waiting {
		f.Fatalf("calls do not wait")
	}
	return q
}

// serve asks the waiters, the last one first, until none waits: what they wait for comes, or time passes. It returns
// the indexes of those that passed, in their order.
func (f *fixture) serve(q *line) (order []int) {
	f.Helper()
	for range 1000 {
		next, first := time.Duration(0), -1
		for i, w := range slices.Backward(q.waiters) {
			if w == nil {
				continue
			}
			ticket, after, decision := w.Poll(f.now)
			switch decision {
			case rule.Pass:
				q.held = append(q.held, ticket)
				order = append(order, i)
				q.waiters[i] = nil
			case rule.Wait:
				first = i
				if after > 0 && (next == 0 || after < next) {
					next = after
				}
			default:
				f.Errorf("the wait of call %d ends with decision %d, though it has time", i, decision)
				q.waiters[i] = nil
			}
		}
		switch {
		case first < 0:
			return order
		case f.release(q, first):
		case next > 0:
			f.now = f.now.Add(next)
		default:
			f.Fatalf("calls wait for nothing: no duration after which to poll, and no call under way that could end")
		}
	}
	f.Fatalf("calls wait though all before them have ended")
	return nil
}

// release lets what the nth call waits for come; false if that is a time.
func (f *fixture) release(q *line, n int) bool {
	switch {
	case f.of.Release != nil:
		f.of.Release(q.queue, f.waiting(n))
	case len(q.held) > 0 && f.of.Again == 0:
		f.end(q.queue, q.held[:1])
		q.held = q.held[1:]
	default:
		return false
	}
	return true
}

// expectIdle ends all calls that are under way: then nobody is in the queue.
func (f *fixture) expectIdle(q *line, when string) {
	f.Helper()
	f.end(q.queue, q.held)
	q.held = nil
	f.forget()
	if !q.queue.Idle(f.now) {
		f.Errorf("the limiter is not idle %s: a call has left something behind", when)
	}
}

func waitersPassInTheirOrder(f *fixture) {
	if f.of.Release != nil {
		f.Skip("calls do not wait for each other")
	}
	q := f.line(3, f.forever())
	if order := f.serve(q); !slices.Equal(order, []int{0, 1, 2}) {
		f.Errorf("calls of one priority that came as 0, 1, 2 pass as %v", order)
	}
}

// waitersAreWoken lets what a call waits for come.
func waitersAreWoken(f *fixture) {
	q := f.line(2, f.forever())
	before := slices.Clone(q.woken)
	if !f.release(q, 0) {
		f.Skip("calls wait for a time")
	}
	_, _, decision := q.waiters[0].Poll(f.now)
	if decision == rule.Pass && q.woken[0] == before[0] {
		f.Errorf("a call may pass, and nobody has woken it")
	}
	if f.of.Release == nil {
		return
	}
	if decision != rule.Pass {
		f.Errorf("a call waits on after Release, with decision %d", decision)
	}
	if _, _, decision := q.waiters[1].Poll(f.now); decision != rule.Wait {
		f.Errorf("Release of one call ends the wait of another one, with decision %d", decision)
	}
}

// waiterThatLeavesTakesNothing ends the first wait before and after what it waits for is there.
func waiterThatLeavesTakesNothing(f *fixture) {
	q := f.line(3, f.forever())
	q.waiters[0].Leave(f.now)
	q.waiters[0] = nil
	if order := f.serve(q); len(order) != 2 || slices.Contains(order, 0) || f.of.Release == nil && order[0] > order[1] {
		f.Errorf("when the first of three has left, there pass %v", order)
	}
	f.expectIdle(q, "when one call has left and all others have ended")
	q = f.line(2, f.forever())
	if f.of.Release == nil && f.release(q, 0) { // so the first one may pass
		q.waiters[0].Leave(f.now)
		q.waiters[0] = nil
		if _, _, decision := q.waiters[1].Poll(f.now); decision != rule.Pass {
			f.Errorf("what was granted to a call that has left is lost")
		}
	}
}

// waiterDoesNotPassAfterItsTime asks a waiter when its time is over, and then whether it has kept
// anything.
func waiterDoesNotPassAfterItsTime(f *fixture) {
	q := f.line(1, rule.Patience{Since: f.now, Until: f.now + 1})
	f.now = f.now.Add(2)
	switch _, after, decision := q.waiters[0].Poll(f.now); {
	case decision == rule.Pass:
		f.Errorf("a call passes though its context has ended")
	case decision == rule.Wait && after < 0:
		f.Errorf("a call is to be polled again after %v", after)
	case decision == rule.Wait:
		q.waiters[0].Leave(f.now)
	}
	if f.of.Again == 0 && f.of.Passes > 0 {
		f.end(q.queue, q.held)
		q.held = f.expect(q.queue, 1, f.of.Passes, "once a call has given up waiting and all others have ended")
	}
	f.expectIdle(q, "when a call has given up waiting and all others have ended")
}

// waitsEndInTime polls a call that nothing comes for, when it says that it should be.
func waitsEndInTime(f *fixture) {
	q := f.line(1, f.forever())
	_, after, decision := q.waiters[0].Poll(f.now)
	if decision != rule.Wait || after == 0 {
		f.Skip("calls wait without an end")
	}
	for range 1000 {
		if after <= 0 {
			f.Fatalf("a call that was to be polled by now waits on, and is to be polled again after %v", after)
		}
		f.now = f.now.Add(after)
		if _, after, decision = q.waiters[0].Poll(f.now); decision != rule.Wait {
			return
		}
	}
	f.Errorf("a call waits on after it was polled a thousand times, each time when it was to be")
}

func retireEndsWaits(f *fixture) {
	if retirer, ok := f.limiter().(rule.Retirer); ok {
		retirer.Retire(f.now)
	}
	q := f.line(2, f.forever())
	retirer, ok := q.queue.(rule.Retirer)
	if !ok {
		f.Fatalf("the limiter has a queue and is no rule.Retirer: calls wait on for a rule that is gone")
	}
	retirer.Retire(f.now)
	f.expectStale(q, "was removed")
	f.noPanic("calls that end when their rule is removed", func() {
		f.giveBack(q.queue, q.held[:len(q.held)/2])
		f.end(q.queue, q.held[len(q.held)/2:])
	})
}

// expectStale polls all calls that wait, which have to have been woken.
func (f *fixture) expectStale(q *line, what string) {
	f.Helper()
	for n, w := range q.waiters {
		if q.woken[n] == 0 {
			f.Errorf("a call waits for a rule that %s, and is not woken", what)
		}
		if _, _, decision := w.Poll(f.now); decision != rule.Stale {
			f.Errorf("a call goes on waiting for a rule that %s, with decision %d", what, decision)
		}
	}
}

// waitsEndWithTheRuleForThem has calls wait while the rule becomes one for which they need not.
func waitsEndWithTheRuleForThem(f *fixture) {
	for _, change := range []struct {
		field, what string
		value       document.Value
	}{
		{"shadow", "is a shadow by now", document.BooleanValue(true)},
		{"origin", "is for another caller by now", document.TextValue("kindtest: another")},
	} {
		q := f.line(2, f.forever())
		to := f.of.Rule.Clone()
		if fault := to.Set(change.field, change.value); fault != "" {
			f.Fatalf("%s %s", change.field, fault)
		}
		next := f.adoptAs(q.queue, to.WithDefaults())
		if a, ok := next.(rule.Activator); ok {
			a.Activate(f.now)
		}
		f.decision(next)
		f.expectStale(q, change.what)
	}
}

// mostWaiting is how many calls a queue may have, at most.
const mostWaiting = 100_000

// queuesAreBounded has more and more calls wait, to all of which Acquire may have said Wait before the first one joined.
func queuesAreBounded(f *fixture) {
	q := f.line(1, f.forever())
	p := f.forever()
	p.Wake = func() {}
	for n := range mostWaiting {
		if _, _, decision := q.queue.Join(f.waiting(n+1), p); decision == rule.Block {
			return
		}
	}
	f.Errorf("%d calls wait, and none is refused: a queue must be bounded", mostWaiting)
}
