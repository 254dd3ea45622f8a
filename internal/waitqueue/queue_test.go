package waitqueue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/waitqueue"
)

type waiter struct {
	name  string
	level int
	node  waitqueue.Node[waiter]
}

type queue = waitqueue.Queue[waiter]

// push has calls join, each of which is the letter of its priority: c, h, n, l or s.
func push(q *queue, calls string) {
	for _, c := range calls {
		w := &waiter{name: string(c), level: strings.IndexRune("slnhc", c)}
		q.Push(w, &w.node, w.level)
	}
}

// serve returns the calls that get the next places.
func serve(q *queue, places int) string {
	var served strings.Builder
	for range places {
		if w := q.First(); w != nil {
			q.Serve(&w.node)
			served.WriteString(w.name)
		}
	}
	return served.String()
}

func TestHigherPriorityIsServedFirst(t *testing.T) {
	t.Parallel()
	var q queue
	push(&q, "slnhc")
	assert.Equal(t, "chnls", serve(&q, 9))
	assert.Nil(t, q.First())
	assert.Nil(t, q.Last())
}

func TestEveryEighthPlaceGoesToALowerPriority(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		newestFirst bool
		waiting     string
		want        string
	}{
		"fifo, one lower":               {false, strings.Repeat("h", 20) + "nn", "hhhhhhhnhhhhhhhnhhhhhh"},
		"fifo, the oldest of all lower": {false, strings.Repeat("c", 30) + "slh", "cccccccscccccccl" + "ccccccchccccccccc"},
		"lifo, the newest of all lower": {true, "hls" + strings.Repeat("c", 30), "cccccccscccccccl" + "ccccccchccccccccc"},
		"one priority":                  {false, strings.Repeat("n", 20), strings.Repeat("n", 20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue{NewestFirst: c.newestFirst}
			push(&q, c.waiting)
			assert.Equal(t, c.want, serve(&q, len(c.waiting)))
		})
	}
}

// What is counted are places in a row while a less important call waits.
func TestShareBeginsAnewWhenOnePriorityWaits(t *testing.T) {
	t.Parallel()
	var q queue
	push(&q, "hhhhhhhhl")
	assert.Equal(t, "hhhhhh", serve(&q, 6))
	q.Remove(findNode(&q, "l"))
	assert.Equal(t, "h", serve(&q, 1))
	push(&q, "lhhhhhhhh")
	assert.Equal(t, "hhhhhhhl", serve(&q, 8))
}

func findNode(q *queue, name string) *waitqueue.Node[waiter] {
	for w := range q.All() {
		if w.name == name {
			return &w.node
		}
	}
	return nil
}

// model is the documented order, by a list of all calls.
type model struct {
	waiting    []*waiter // in the order in which they came
	passedOver int
}

func (m *model) highest() int {
	return slices.MaxFunc(m.waiting, func(a, b *waiter) int { return a.level - b.level }).level
}

func (m *model) lowest() int {
	return slices.MinFunc(m.waiting, func(a, b *waiter) int { return a.level - b.level }).level
}

// with returns the calls of the levels for which the condition holds.
func (m *model) with(condition func(level int) bool) []*waiter {
	return slices.DeleteFunc(slices.Clone(m.waiting), func(w *waiter) bool { return !condition(w.level) })
}

// first returns the call to serve and whether it gets the share of lower priorities.
func (m *model) first(newestFirst bool) *waiter {
	highest := m.highest()
	candidates := m.with(func(level int) bool { return level == highest })
	if lower := m.with(func(level int) bool { return level < highest }); len(lower) > 0 && m.passedOver == waitqueue.Share-1 {
		candidates = lower
	}
	return pick(candidates, newestFirst)
}

func (m *model) serve(w *waiter) {
	if w.level == m.highest() && w.level != m.lowest() {
		m.passedOver++
	} else {
		m.passedOver = 0
	}
	m.remove(w)
}

func (m *model) remove(w *waiter) {
	m.waiting = slices.DeleteFunc(m.waiting, func(other *waiter) bool { return other == w })
}

func pick(calls []*waiter, newest bool) *waiter {
	if newest {
		return calls[len(calls)-1]
	}
	return calls[0]
}

func TestQueueServesInTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var m model
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "calls") {
					w := &waiter{level: rapid.IntRange(0, waitqueue.Levels-1).Draw(t, "level")}
					q.Push(w, &w.node, w.level)
					m.waiting = append(m.waiting, w)
				}
			},
			"serve": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "places") {
					if len(m.waiting) == 0 {
						return
					}
					want := m.first(q.NewestFirst)
					require.Same(t, want, q.First())
					q.Serve(&want.node)
					m.serve(want)
				}
			},
			"remove": func(t *rapid.T) {
				if len(m.waiting) > 0 {
					w := rapid.SampledFrom(m.waiting).Draw(t, "call")
					q.Remove(&w.node)
					m.remove(w)
				}
			},
			"order": func(*rapid.T) { q.NewestFirst = !q.NewestFirst },
			"":      func(t *rapid.T) { m.compare(t, &q) },
		})
	})
}

func (m *model) compare(t *rapid.T, q *queue) {
	require.Equal(t, len(m.waiting), q.Len())
	all := slices.Collect(q.All())
	if len(m.waiting) == 0 {
		require.Nil(t, q.First())
		require.Nil(t, q.Last())
		require.Empty(t, all)
		return
	}
	want := slices.Clone(m.waiting)
	slices.SortStableFunc(want, func(a, b *waiter) int { return b.level - a.level })
	require.Equal(t, want, all)
	lowest := m.lowest()
	require.Equal(t, lowest, q.Lowest())
	require.Same(t, m.first(q.NewestFirst), q.First())
	require.Same(t, pick(m.with(func(level int) bool { return level == lowest }), !q.NewestFirst), q.Last())
}

// A flood of more important calls delays a call by at most eight places for each call of
// lower priority than the flood that came before it.
func TestLowPriorityDoesNotStarve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		before := rapid.StringOfN(rapid.RuneFrom([]rune("hnls")), 0, 10, -1).Draw(t, "before")
		push(&q, before)
		low := &waiter{name: "low"}
		q.Push(low, &low.node, low.level)
		for places := 1; ; places++ {
			push(&q, rapid.SampledFrom([]string{"c", "cc", "ccchnl"}).Draw(t, "flood"))
			w := q.First()
			q.Serve(&w.node)
			if w == low {
				require.LessOrEqual(t, places, waitqueue.Share*(len(before)+1))
				return
			}
			require.Less(t, places, waitqueue.Share*(len(before)+1), "still waiting")
		}
	})
}
