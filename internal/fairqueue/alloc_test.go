package fairqueue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/fairqueue"
)

func TestQueueThatHasBeenAsLongBeforeAllocatesNothing(t *testing.T) {
	q := fairqueue.New[call](1 << 10)
	r := random(4)
	calls := make([]call, 3000)
	round := func() {
		for i := range calls {
			q.Push(&calls[i], &calls[i].node, key(r.IntN(500)), 1+float64(i%2), i%50 > 0)
		}
		for i := range calls {
			if gone := q.MakesWay(key(i), 1, true); gone != nil && i%3 == 0 {
				q.Remove(&gone.node)
			} else if first := q.First(); first != nil {
				q.Settle(q.Serve(&first.node, fairqueue.Unknown), int64(r.IntN(1e6)))
			}
		}
	}
	for range 20 { // the lists by the number of calls grow with the luck of the draw
		round()
	}
	assert.Less(t, testing.AllocsPerRun(20, round), 1.)
}
