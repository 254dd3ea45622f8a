package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestTheOrderOfWhatHappensAtTheSameInstant(t *testing.T) {
	t.Parallel()
	a := newAgenda()
	for _, kind := range []entryKind{turnFalls, callEnds, secondBegins, turnFalls, callEnds} {
		a.add(entry{at: time.Second, kind: kind})
	}
	a.add(entry{at: time.Second - 1, kind: turnFalls})
	var numbers []uint64
	for a.len() > 0 {
		numbers = append(numbers, a.pop().number)
	}
	assert.Equal(t, []uint64{6, 3, 2, 5, 1, 4}, numbers,
		"what is earlier, then seconds, ends of calls and turns, each in the order of their making")
}

func TestAHeapIsInOrder(t *testing.T) {
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
