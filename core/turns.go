package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// turns are those that queues have granted to one call. The first few are kept
// in place, so that a call that need not wait allocates nothing.
type turns struct {
	few   [4]turn
	more  []turn
	count int
}

// turn is a ticket and the queue that granted it.
type turn struct {
	queue  *flow.Queue
	ticket flow.Ticket
}

func (t *turns) at(i int) *turn {
	if i < len(t.few) {
		return &t.few[i]
	}
	return &t.more[i-len(t.few)]
}

func (t *turns) add(queue *flow.Queue, ticket flow.Ticket) {
	if t.count >= len(t.few) {
		t.more = append(t.more, turn{})
	}
	t.count++
	*t.at(t.count - 1) = turn{queue, ticket}
}

// has says whether there is a turn of that queue.
func (t *turns) has(queue *flow.Queue) bool {
	for i := range t.count {
		if t.at(i).queue == queue {
			return true
		}
	}
	return false
}

// giveBack returns the turns to their queues, the last first.
func (t *turns) giveBack(now clock.Instant) {
	for i := t.count - 1; i >= 0; i-- {
		t.at(i).queue.GiveBack(now, t.at(i).ticket)
	}
}
