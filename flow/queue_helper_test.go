package flow_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// caller is a call that waits in a queue.
type caller struct {
	id     int
	waiter *flow.Waiter
	woken  <-chan struct{}
}

// passedCall is when a call went.
type passedCall struct {
	id   int
	at   time.Duration // since the epoch
	turn flow.Turn
}

// testQueue is a queue with all of its callers.
type testQueue struct {
	t        require.TestingT
	rule     flow.Rule
	compiled *flow.Compiled
	version  uint64
	queue    *flow.Queue
	now      clock.Instant
	calls    int
	waiting  []caller
	passes   []passedCall // in the order in which they were told
}

func newTestQueue(t require.TestingT, rule flow.Rule) *testQueue {
	compiled := compile(t, rule, 1)
	return &testQueue{
		t: t, rule: flow.Kind().WithDefaults(rule), compiled: compiled, version: 1,
		queue: flow.NewQueue(compiled, epoch), now: epoch,
	}
}

// arrive makes a call that waits if it has to, as long as it may. It is known
// by the number of the call.
func (l *testQueue) arrive(n int32) rule.Decision { return l.arriveFor(n, time.Duration(1<<62)) }

// arriveFor makes a call of limited patience.
func (l *testQueue) arriveFor(n int32, patience time.Duration) rule.Decision {
	waiter, woken := newWaiter()
	id := l.calls
	l.calls++
	turn, decision := l.queue.Join(l.compiled, l.now, n, patience, waiter)
	switch decision {
	case rule.Pass:
		l.went(id, turn)
	case rule.Wait:
		l.waiting = append(l.waiting, caller{id, waiter, woken})
	}
	return decision
}

func (l *testQueue) went(id int, turn flow.Turn) {
	l.passes = append(l.passes, passedCall{id, l.now.Sub(epoch), turn})
}

// call makes so many calls of one token.
func (l *testQueue) call(times int) {
	for range times {
		l.arrive(1)
	}
}

// moveTo lets time pass: everyone goes when told to.
func (l *testQueue) moveTo(d time.Duration) {
	end := epoch.Add(d)
	for len(l.waiting) > 0 {
		turn, until, decision := l.queue.Poll(l.now, l.waiting[0].waiter)
		if decision != rule.Wait {
			if decision == rule.Pass {
				l.went(l.waiting[0].id, turn)
			}
			l.waiting = l.waiting[1:]
			continue
		}
		require.Positive(l.t, until, "the first in the queue knows when it passes")
		if l.now.Add(until) > end {
			break
		}
		l.now = l.now.Add(until)
	}
	l.now = end
}

// cancel has a waiting call give up.
func (l *testQueue) cancel(id int) {
	for i, c := range l.waiting {
		if c.id == id {
			_, left := l.queue.Leave(l.now, c.waiter)
			require.True(l.t, left, "call %d was still waiting", id)
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			return
		}
	}
	require.Fail(l.t, "nobody to cancel")
}

// giveBackLast returns the turn that was granted last.
func (l *testQueue) giveBackLast() {
	last := len(l.passes) - 1
	l.queue.GiveBack(l.now, l.passes[last].turn)
	l.passes = l.passes[:last]
}

// change goes over to a changed rule at once.
func (l *testQueue) change(how func(r *flow.Rule)) {
	how(&l.rule)
	l.version++
	l.compiled = compile(l.t, l.rule, l.version)
	l.queue.Adopt(l.compiled, l.now)
}

// ids returns who went, in order.
func (l *testQueue) ids() (ids []int) {
	for _, p := range l.passes {
		ids = append(ids, p.id)
	}
	return ids
}

// times returns when calls went.
func (l *testQueue) times() (times []time.Duration) {
	for _, p := range l.passes {
		times = append(times, p.at)
	}
	return times
}

// every returns a number of times that are evenly spaced.
func every(spacing time.Duration, times int) (all []time.Duration) {
	for i := range times {
		all = append(all, time.Duration(i)*spacing)
	}
	return all
}
