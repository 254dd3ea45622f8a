package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestEventsOfOneInstantAreOrderedByKindThenByNumber(t *testing.T) {
	t.Parallel()
	q := newEventQueue()
	for _, kind := range []eventKind{waitOver, workEnds, secondSampled, timeoutOver, secondBegins, waitOver, workEnds} {
		q.add(queuedEvent{at: time.Second, kind: kind})
	}
	q.add(queuedEvent{at: time.Second - 1, kind: waitOver})
	var numbers []uint64
	for q.len() > 0 {
		numbers = append(numbers, q.pop().number)
	}
	assert.Equal(t, []uint64{8, 5, 2, 7, 4, 3, 1, 6}, numbers)
}

func TestHeapPopsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := heap[int]{before: func(a, b int) bool { return a < b }}
		held := map[int]int{}
		for _, n := range rapid.SliceOf(rapid.IntRange(-50, 50)).Draw(t, "pushed; negative: popped") {
			if n >= 0 {
				h.push(n)
				held[n]++
			} else if h.len() > 0 {
				top := h.top()
				assert.Equal(t, top, h.pop())
				for other, count := range held {
					assert.True(t, count == 0 || top <= other)
				}
				held[top]--
			}
		}
	})
}
