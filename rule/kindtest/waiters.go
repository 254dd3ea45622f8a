package kindtest

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// line is calls that wait in a queue whose places are taken.
type line struct {
	queue   rule.Queue
	held    []rule.Ticket // of calls under way
	waiters []rule.Waiter // in the order in which they came
}

// line lets calls take all there is, and others wait. It skips the test if no call waits.
func (f *fixture) line(waiting int, p rule.Patience) *line {
	f.Helper()
	queue, ok := f.limiter().(rule.Queue)
	if !ok {
		f.Skip("the limiter has no queue")
	}
	q := &line{queue: queue, held: f.exhaust(queue, 1, max(0, f.of.Passes)+1)}
	for range waiting {
		if _, decision := f.acquire(queue, f.call(1)); decision != rule.Wait {
			f.Skip("no call, or not as many, may wait")
		}
		waiter, ticket, decision := queue.Join(f.call(1), p)
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
	return q
}

// serve asks the waiters, the last one first, until none waits: time passes, or a call ends where
// that does not help. It returns the indexes of those that passed, in their order.
func (f *fixture) serve(q *line) (order []int) {
	f.Helper()
	for range 1000 {
		next, waiting := time.Duration(0), false
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
				waiting = true
				if after > 0 && (next == 0 || after < next) {
					next = after
				}
			default:
				f.Errorf("the wait of call %d ends with decision %d, though it has time", i, decision)
				q.waiters[i] = nil
			}
		}
		switch {
		case !waiting:
			return order
		case len(q.held) > 0 && f.of.Again == 0:
			f.end(q.queue, q.held[:1])
			q.held = q.held[1:]
		case next > 0:
			f.now = f.now.Add(next)
		default:
			f.Fatalf("calls wait for nothing: no duration after which to poll, and no call under way that could end")
		}
	}
	f.Fatalf("calls wait though all before them have ended")
	return nil
}

func waitersPassInTheirOrder(f *fixture) {
	q := f.line(3, f.forever())
	if order := f.serve(q); !slices.Equal(order, []int{0, 1, 2}) {
		f.Errorf("calls of one priority that came as 0, 1, 2 pass as %v", order)
	}
}

// waitersAreWoken ends a call that another one waits for.
func waitersAreWoken(f *fixture) {
	woken := 0
	q := f.line(1, rule.Patience{Since: f.now, Until: math.MaxInt64, Wake: func() { woken++ }})
	if f.of.Again != 0 || len(q.held) == 0 {
		f.Skip("calls wait for a time")
	}
	before := woken
	f.end(q.queue, q.held[:1])
	if _, _, decision := q.waiters[0].Poll(f.now); decision == rule.Pass && woken == before {
		f.Errorf("a call may pass, and nobody has woken it")
	}
}

// waiterThatLeavesTakesNothing ends the first wait before and after what it waits for is there.
func waiterThatLeavesTakesNothing(f *fixture) {
	q := f.line(3, f.forever())
	q.waiters[0].Leave(f.now)
	q.waiters[0] = nil
	if order := f.serve(q); !slices.Equal(order, []int{1, 2}) {
		f.Errorf("when the first of three has left, there pass %v", order)
	}
	q = f.line(2, f.forever())
	if len(q.held) > 0 && f.of.Again == 0 {
		f.end(q.queue, q.held[:1]) // so the first one may pass
		q.held = q.held[1:]
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
	q := f.line(1, rule.Patience{Since: f.now, Until: f.now + 1, Wake: func() {}})
	f.now = f.now.Add(2)
	switch _, _, decision := q.waiters[0].Poll(f.now); decision {
	case rule.Pass:
		f.Errorf("a call passes though its context has ended")
	case rule.Wait:
		q.waiters[0].Leave(f.now)
	}
	if f.of.Again != 0 || f.of.Passes == All {
		return
	}
	f.end(q.queue, q.held)
	f.expect(q.queue, 1, f.of.Passes, "once a call has given up waiting and all others have ended")
}

func retireEndsWaits(f *fixture) {
	retirer, ok := f.limiter().(rule.Retirer)
	if !ok {
		f.Skip("the limiter has nothing to release")
	}
	retirer.Retire(f.now)
	q := f.line(2, f.forever())
	q.queue.(rule.Retirer).Retire(f.now)
	for _, w := range q.waiters {
		if _, _, decision := w.Poll(f.now); decision != rule.Stale {
			f.Errorf("a call goes on waiting for a rule that was removed, with decision %d", decision)
		}
	}
	f.noPanic("calls that end when their rule is removed", func() {
		f.giveBack(q.queue, q.held[:len(q.held)/2])
		f.end(q.queue, q.held[len(q.held)/2:])
	})
}
