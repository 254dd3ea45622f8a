package flow_test

import (
	"sync"
	"testing"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// askOften has callers ask for turns of the queues of one of the lists at the same time.
func askOften(rounds int, lists ...[]flow.Ask) {
	var callers sync.WaitGroup
	begin := make(chan struct{})
	for _, asks := range lists {
		callers.Go(func() {
			tickets := make([]flow.Ticket, len(asks))
			<-begin
			for range rounds {
				flow.TakeAll(asks, epoch, 1, time.Hour, tickets)
			}
		})
	}
	close(begin)
	callers.Wait()
}

func TestCallsThatAskTheSameQueuesInAnotherOrderDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	var asks []flow.Ask
	for range 3 {
		l := newLine(t, throttle(1000, time.Minute))
		asks = append(asks, flow.Ask{Queue: l.queue, Terms: l.terms})
	}
	a, b, c := asks[0], asks[1], asks[2]
	askOften(50_000, []flow.Ask{a, b, c}, []flow.Ask{c, b, a}, []flow.Ask{b, c, a}, []flow.Ask{a, c})
}

func TestTakingOverFromAQueueDoesNotBlockCallsThatStillAskIt(t *testing.T) {
	t.Parallel()
	for range 3000 {
		rule := throttle(1000, time.Minute)
		old, other := newLine(t, rule), newLine(t, rule)
		rule.Algorithm = flow.TokenBucket
		terms := compile(t, rule, 2)
		next := flow.NewQueue(terms, epoch)
		next.Follow(old.queue)
		inOther := flow.Ask{Queue: other.queue, Terms: other.terms}
		askOften(50,
			[]flow.Ask{{Queue: old.queue, Terms: old.terms}, inOther},
			[]flow.Ask{{Queue: next, Terms: terms}, inOther})
	}
}
