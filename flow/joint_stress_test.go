package flow_test

import (
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// askOften has callers ask the queues of one of the lists at the same time.
func askOften(rounds int, lists ...[]flow.QueueRule) {
	var callers sync.WaitGroup
	begin := make(chan struct{})
	for _, queues := range lists {
		callers.Go(func() {
			turns := make([]flow.Turn, len(queues))
			<-begin
			for range rounds {
				flow.TakeAll(queues, epoch, 1, time.Hour, turns)
			}
		})
	}
	close(begin)
	callers.Wait()
}

func TestCallsThatAskTheSameQueuesInAnotherOrderDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	var queues []flow.QueueRule
	for range 3 {
		l := newTestQueue(t, throttle(1000, time.Minute))
		queues = append(queues, flow.QueueRule{Queue: l.queue, Compiled: l.compiled})
	}
	a, b, c := queues[0], queues[1], queues[2]
	askOften(50_000, []flow.QueueRule{a, b, c}, []flow.QueueRule{c, b, a}, []flow.QueueRule{b, c, a}, []flow.QueueRule{a, c})
}

func TestTakingOverFromAQueueDoesNotBlockCallsThatStillAskIt(t *testing.T) {
	t.Parallel()
	for range 3000 {
		rule := throttle(1000, time.Minute)
		old, other := newTestQueue(t, rule), newTestQueue(t, rule)
		rule.Algorithm = flow.TokenBucket
		compiled := compile(t, rule, 2)
		next := flow.NewQueue(compiled, epoch)
		next.Follow(old.queue)
		inOther := flow.QueueRule{Queue: other.queue, Compiled: other.compiled}
		askOften(50,
			[]flow.QueueRule{{Queue: old.queue, Compiled: old.compiled}, inOther},
			[]flow.QueueRule{{Queue: next, Compiled: compiled}, inOther})
	}
}
