package lease

import (
	"container/heap"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// dueQueue is the budgets that are to be looked at, by when. Those of which nothing is asked
// are not in it.
type dueQueue struct {
	budgets budgetHeap
	groups  budgetHeap // those of groups, which come after the others
}

// set has a budget looked at at an instant; not at all if that is never.
func (q *dueQueue) set(b *Budget, due clock.Instant) {
	b.due = due
	budgets := &q.budgets
	if b.group != nil {
		budgets = &q.groups
	}
	switch {
	case due == exchange.Never && b.queueIndex >= 0:
		heap.Remove(budgets, b.queueIndex)
	case due == exchange.Never:
	case b.queueIndex >= 0:
		heap.Fix(budgets, b.queueIndex)
	default:
		heap.Push(budgets, b)
	}
}

// due returns when the first budget is to be looked at, never if none is.
func (q *dueQueue) due() clock.Instant { return min(q.budgets.due(), q.groups.due()) }

func (h budgetHeap) due() clock.Instant {
	if len(h) == 0 {
		return exchange.Never
	}
	return h[0].due
}

// budgetHeap implements [heap.Interface].
type budgetHeap []*Budget

func (h budgetHeap) Len() int           { return len(h) }
func (h budgetHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h budgetHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].queueIndex, h[j].queueIndex = i, j
}

func (h *budgetHeap) Push(x any) {
	b := x.(*Budget)
	b.queueIndex = len(*h)
	*h = append(*h, b)
}

func (h *budgetHeap) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	b.queueIndex = -1
	return b
}
