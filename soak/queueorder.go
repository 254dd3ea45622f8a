package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/core"
)

// queueName is the resource whose queue is checked.
const queueName = "queue"

// waiter is a call that waits in a queue.
type waiter struct {
	*call
	arrival *core.Arrival
	cancel  context.CancelFunc
	done    bool
}

// testQueueOrder adds calls to a queue until ctx ends, and checks that they leave it in order:
// when a call has passed, those before it have passed, too.
func testQueueOrder(ctx context.Context, t *target, random *rand.Rand) {
	for ctx.Err() == nil {
		var queue []*waiter
		for range 1 + random.IntN(12) {
			queue = append(queue, t.enqueue())
		}
		if random.IntN(2) == 0 {
			queue[random.IntN(len(queue))].cancel()
		}
		for end := time.Now().Add(2 * time.Minute); !t.pollAll(queue); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.engine.findings.add("%s: a call waits for ever", t.name)
				return
			}
		}
	}
}

func (t *target) enqueue() *waiter {
	w := &waiter{call: &call{name: t.name, tokens: 1, group: groupOf(""), before: t.engine.clock.Now()}}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.arrival = new(core.Arrival)
	w.arrival.Arrive(w.ctx, t.engine.Engine, w.name, func() {})
	t.poll(w)
	return w
}

func (t *target) poll(w *waiter) {
	if w.done {
		return
	}
	if _, w.done = w.arrival.Proceed(); !w.done {
		return
	}
	guard, err := w.arrival.Result()
	t.recordResult(w.call, t.engine.clock.Now(), err)
	guard.Exit()
	w.cancel()
}

// pollAll polls the calls of a queue, the last first, and returns true when all of them
// are decided.
func (t *target) pollAll(queue []*waiter) (done bool) {
	last := len(queue) - 1
	for ; last >= 0; last-- {
		if t.poll(queue[last]); queue[last].passed() {
			break
		}
	}
	for i := last - 1; i >= 0; i-- {
		if t.poll(queue[i]); !queue[i].done {
			t.engine.findings.add("%s: call %d of a queue passed before call %d", t.name, last, i)
		}
	}
	for _, w := range queue {
		if !w.done {
			return false
		}
	}
	return true
}

// passed reports whether the call has passed.
func (w *waiter) passed() bool {
	if !w.done {
		return false
	}
	_, err := w.arrival.Result()
	return err == nil
}
