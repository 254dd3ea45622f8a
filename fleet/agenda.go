package fleet

import (
	"container/heap"

	"github.com/penstock-go/penstock/clock"
)

// agenda is the budgets that are to be looked at, by when. Those of which nothing is asked
// are not in it.
type agenda struct {
	budgets dueBudgets
	groups  dueBudgets // those of groups, which come after the others
}

// set has a budget looked at at an instant; not at all if that is never.
func (a *agenda) set(b *Budget, due clock.Instant) {
	b.due = due
	budgets := &a.budgets
	if b.group != nil {
		budgets = &a.groups
	}
	switch {
	case due == never && b.inAgenda >= 0:
		heap.Remove(budgets, b.inAgenda)
	case due == never:
	case b.inAgenda >= 0:
		heap.Fix(budgets, b.inAgenda)
	default:
		heap.Push(budgets, b)
	}
}

// due returns when the first budget is to be looked at, never if none is.
func (a *agenda) due() clock.Instant { return min(a.budgets.due(), a.groups.due()) }

func (d dueBudgets) due() clock.Instant {
	if len(d) == 0 {
		return never
	}
	return d[0].due
}

// dueBudgets implements [heap.Interface].
type dueBudgets []*Budget

func (d dueBudgets) Len() int           { return len(d) }
func (d dueBudgets) Less(i, j int) bool { return d[i].due < d[j].due }

func (d dueBudgets) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].inAgenda, d[j].inAgenda = i, j
}

func (d *dueBudgets) Push(x any) {
	b := x.(*Budget)
	b.inAgenda = len(*d)
	*d = append(*d, b)
}

func (d *dueBudgets) Pop() any {
	last := len(*d) - 1
	b := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	b.inAgenda = -1
	return b
}
