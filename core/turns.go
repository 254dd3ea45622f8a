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

// turn is a ticket and the queue that granted it, to a call that came under the
// given terms.
type turn struct {
	queue  *flow.Queue
	ticket flow.Ticket
	terms  *flow.Terms
	waited bool // for it
}

func (t *turns) at(i int) *turn {
	if i < len(t.few) {
		return &t.few[i]
	}
	return &t.more[i-len(t.few)]
}

func (t *turns) add(granted turn) {
	if t.count >= len(t.few) {
		t.more = append(t.more, turn{})
	}
	t.count++
	*t.at(t.count - 1) = granted
}

// of returns the turn of that queue, nil if there is none.
func (t *turns) of(queue *flow.Queue) *turn {
	for i := range t.count {
		if t.at(i).queue == queue {
			return t.at(i)
		}
	}
	return nil
}

// remove takes a turn out.
func (t *turns) remove(which *turn) {
	t.count--
	*which = *t.at(t.count)
}

// giveBack returns the turns to their queues, the last first.
func (t *turns) giveBack(now clock.Instant) {
	for i := t.count - 1; i >= 0; i-- {
		t.at(i).queue.GiveBack(now, t.at(i).ticket)
	}
}
