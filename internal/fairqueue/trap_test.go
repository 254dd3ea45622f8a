package fairqueue_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

// Charges lower tags when calls cost less than they were taken for. A tenant with a lesser tag is not
// left behind: it is passed by so many times at most as there are twice the tenants.
func TestTenantWhoseTagIsLoweredIsNotLeftBehind(t *testing.T) {
	t.Parallel()
	const tenants = 100
	r := random(1)
	q := fairqueue.New[call](1 << 10)
	for i := range tenants {
		for range 50 {
			push(q, i, 1)
		}
	}
	var underWay []*call
	passedBy := make([]int, tenants)
	for range 20_000 {
		c := serve(q, fairqueue.Unknown)
		for i := range passedBy {
			passedBy[i]++
		}
		passedBy[c.index] = 0
		push(q, c.index, 1)
		underWay = append(underWay, c)
		if len(underWay) > 20 {
			i := r.IntN(len(underWay))
			q.Settle(underWay[i].charge, int64(r.ExpFloat64()*1e7))
			underWay = append(underWay[:i], underWay[i+1:]...)
		}
		for i, n := range passedBy {
			// Costs are exponential: the tag of a tenant may be some mean calls ahead of the others.
			if n >= 12*tenants {
				require.Fail(t, "a tenant is left behind", "tenant %d is passed by %d times", i, n)
			}
		}
	}
}

// A tenant whose calls cost as much as they are taken for on average gets its share, though some cost
// more and some less: not only errors of one sign count.
func TestErrorsOfBothSignsCount(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	served := [2]int{}
	for range 10 {
		push(q, 0, 1)
		push(q, 1, 1)
	}
	for i := range 10_000 {
		c := serve(q, fairqueue.Unknown)
		served[c.index]++
		cost := int64(1_000_000)
		if c.index == 1 { // the same on average
			cost = int64(i%2) * 2_000_000
		}
		q.Settle(c.charge, cost)
		push(q, c.index, 1)
	}
	assert.InEpsilon(t, served[0], served[1], .05)
}

// alone has a tenant with one call at a time beside one that always has many waiting, and returns the
// share of what is served that the first one gets.
func alone(q *queue, calls int) float64 {
	for range 100 {
		push(q, 0, 1)
	}
	push(q, 1, 1)
	served := 0
	var lastTime *call
	for range calls {
		if lastTime != nil { // its call has ended: it makes the next one
			push(q, 1, 1)
			lastTime = nil
		}
		c := serve(q, fairqueue.Unknown)
		q.Settle(c.charge, 1_000_000)
		if c.index == 1 {
			served++
			lastTime = c
		} else {
			push(q, 0, 1)
		}
	}
	return float64(served) / float64(calls)
}

// Without history such a tenant begins anew each time, and gets nearly all.
func TestTenantWithOneCallAtATimeGetsNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, .5, alone(fairqueue.New[call](1<<10), 500), .01)
}

// A tenant takes the place of another one in the history, and nothing of what that one owes.
func TestTenantInheritsNoDebtOfAStranger(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1)
	for i := range 10_000 { // many more than the history has space for
		push(q, i, 1)
		c := serve(q, 1_000_000_000)
		q.Settle(c.charge, 1_000_000_000)
	}
	push(q, 10_000, 1)
	for range 10 {
		push(q, 10_001, 1)
	}
	assert.Equal(t, 10_000, serve(q, 1000).index)
	assert.Equal(t, 10_001, serve(q, 1000).index, "each of them begins at the virtual time")
}

// The mean is that of all calls which have ended, of those that did not wait too: so the first call
// that waits has a cost.
func TestCallsThatDidNotWaitTellWhatCallsCost(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for range 10 {
		q.Learn(1_000_000)
	}
	push(q, 0, 1)
	push(q, 0, 1)
	push(q, 1, 1)
	assert.Equal(t, 0, serve(q, fairqueue.Unknown).index)
	assert.Equal(t, 1, serve(q, fairqueue.Unknown).index, "the first tenant has been charged")
}

// The cost is taken for what it has become until a call is served, not for what it was when it came.
func TestCostIsEstimatedWhenACallIsServed(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for range 3 {
		push(q, 0, 1)
	}
	push(q, 1, 1)
	for range 1000 {
		q.Learn(8_000_000)
	}
	first := serve(q, fairqueue.Unknown)
	assert.Equal(t, 1, serve(q, fairqueue.Unknown).index)
	q.Settle(first.charge, 8_000_000)
	assert.Equal(t, 0, serve(q, fairqueue.Unknown).index)
}

// Shares are those of the weights, of calls too that cost only some units of work.
func TestSharesOfWeightsDoNotDrift(t *testing.T) {
	t.Parallel()
	weights := []float64{1, 7, 30, 1000}
	q := fairqueue.New[call](1 << 10)
	for i, w := range weights {
		for range 3 {
			push(q, i, w)
		}
	}
	served := make([]float64, len(weights))
	for range 103_800 {
		c := serve(q, 100)
		served[c.index]++
		push(q, c.index, weights[c.index])
	}
	for i, w := range weights {
		assert.InEpsilon(t, w*100, served[i], .02, "weight %v", w)
	}
}

// Where every tenant has one call waiting, none makes way: else calls would replace each other
// without end.
func TestNobodyLosesItsOnlyCall(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for i := range 100 {
		push(q, i, .01)
	}
	assert.Nil(t, q.MakesWay(key(100), 1000, true))
	second := push(q, 7, .01)
	assert.Same(t, second, q.MakesWay(key(100), 1000, true), "the newest one of it")
	assert.Nil(t, q.MakesWay(key(7), .01, true), "it has most itself")
}

// Another weight is that of all calls of the tenant that wait, which keep their order.
func TestWeightChangesWhileCallsWait(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	for range 200 {
		push(q, 0, 1)
		push(q, 1, 1)
	}
	push(q, 1, 4)
	served := [2]int{}
	for range 100 {
		served[serve(q, 1_000_000).index]++
	}
	assert.Equal(t, [2]int{20, 80}, served)
	assert.Equal(t, 0, q.Last().index, "it has most for its weight")
}

// Tags may overflow: the order is that of their differences.
func TestVirtualTimeMayOverflow(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	const most = 1 << 48
	served := [3]int{}
	push(q, 0, .01)
	push(q, 1, .01)
	for i := range 10_000 { // 2^58 of 2^64 each
		if i%100 == 50 {
			push(q, 2, .01) // now and then
		}
		c := serve(q, most)
		if served[c.index]++; c.index < 2 {
			push(q, c.index, .01)
		}
	}
	assert.InDelta(t, served[0], served[1], 2)
	assert.Equal(t, 100, served[2])
}

// Costs far from the mean are sorted as well: tags that are far ahead wait in the last slot.
func TestCostsOfVeryDifferentSizes(t *testing.T) {
	t.Parallel()
	r := random(2)
	q := fairqueue.New[call](1 << 10)
	q.Learn(10)
	work := [20]int64{}
	greatest := int64(0)
	for i := range work {
		push(q, i, 1)
		push(q, i, 1)
	}
	for range 20_000 {
		cost := int64(1) << r.IntN(40)
		c := serve(q, cost)
		push(q, c.index, 1)
		work[c.index] += cost
		greatest = max(greatest, cost)
		require.LessOrEqual(t, work[c.index]-slices.Min(work[:]), 2*greatest)
	}
}

func TestNodeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	q := fairqueue.New[call](1 << 10)
	r := random(3)
	var calls []*call
	for range 50_000 {
		calls = append(calls, push(q, r.IntN(20_000), 1))
	}
	for _, i := range r.Perm(len(calls)) {
		assert.True(t, calls[i].node.Waits())
		q.Remove(&calls[i].node)
	}
	assert.Zero(t, q.Len())
	assert.Nil(t, q.First())
	assert.Nil(t, q.Last())
	push(q, 3, 1)
	assert.Equal(t, 3, serve(q, 1).index)
}
