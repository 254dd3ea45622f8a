package simulate

// heap holds things in order: the one that comes before all others is on top.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool // a strict order
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(item, h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = item
}

func (h *heap[T]) top() T { return h.items[0] }

func (h *heap[T]) pop() T {
	first, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	h.sink()
	return first
}

// sink puts the top into its place after it changed.
func (h *heap[T]) sink() {
	if len(h.items) == 0 {
		return
	}
	item, i := h.items[0], 0
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if right := child + 1; right < len(h.items) && h.before(h.items[right], h.items[child]) {
			child = right
		}
		if !h.before(h.items[child], item) {
			break
		}
		h.items[i] = h.items[child]
		i = child
	}
	h.items[i] = item
}
