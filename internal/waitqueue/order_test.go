package waitqueue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/waitqueue"
)

// drawQueue returns a queue that has served some calls and in which others wait.
func drawQueue(t *rapid.T) *queue {
	q := &queue{NewestFirst: rapid.Bool().Draw(t, "newest first")}
	for range rapid.IntRange(0, 4).Draw(t, "rounds") {
		push(q, rapid.StringOfN(rapid.SampledFrom([]rune("slnhc")), 0, 20, -1).Draw(t, "calls"))
		serve(q, rapid.IntRange(0, 20).Draw(t, "places"))
	}
	return q
}

func TestOrderIsThatInWhichCallsAreServed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQueue(t)
		var order strings.Builder
		for w := range q.Order() {
			order.WriteString(w.name)
		}
		assert.Len(t, order.String(), q.Len())
		assert.Equal(t, serve(q, q.Len()), order.String())
	})
}

func TestCallThatWouldOvertakeIsTheFirstWhenItHasJoined(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQueue(t)
		w := &waiter{level: rapid.IntRange(0, waitqueue.Levels-1).Draw(t, "level")}
		would := q.WouldOvertake(w.level)
		for top := range q.All() { // the most important one comes first
			if top.level > w.level { // it may be the first because it is less important
				assert.False(t, would)
				return
			}
			break
		}
		q.Push(w, &w.node, w.level)
		assert.Equal(t, would, q.First() == w)
	})
}

func TestOvertakingCountsAsAPlaceThatWentToTheHighestPriority(t *testing.T) {
	t.Parallel()
	var q queue
	q.Overtake() // nobody
	push(&q, "nnnnnnnnl")
	for range 9 {
		q.Overtake()
	}
	assert.Equal(t, "lnnnnnnnn", serve(&q, 9))
}

func TestSharedPlacesAreThoseThatLowerPrioritiesGetBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		calls, passed := rapid.IntRange(0, 50).Draw(t, "calls"), rapid.IntRange(0, 7).Draw(t, "passed over")
		var q queue
		push(&q, strings.Repeat("h", passed+calls)+"h"+strings.Repeat("n", 20))
		serve(&q, passed)
		places := q.SharedPlaces(int64(calls))
		served := serve(&q, passed+calls+20)
		last := strings.LastIndex(served, "h")
		assert.Equal(t, int64(strings.Count(served[:last], "n")), places)
	})
}
