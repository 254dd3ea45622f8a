package simulate

import "time"

// agenda is what is going to happen, arrivals apart, in order.
type agenda struct {
	heap[entry]
	entries uint64 // made so far
}

// entry is something that happens at a time.
type entry struct {
	at     time.Duration
	kind   entryKind
	number uint64 // of the entry: the order of what is alike
	call   *call  // that it happens to
}

// entryKind orders what happens at the same time.
type entryKind uint8

const (
	secondBegins entryKind = iota
	callEnds
	turnFalls // due, if the call was not woken before
)

func newAgenda() agenda {
	return agenda{heap: heap[entry]{before: func(a, b entry) bool {
		if a.at != b.at {
			return a.at < b.at
		}
		if a.kind != b.kind {
			return a.kind < b.kind
		}
		return a.number < b.number
	}}}
}

// add notes an entry and returns its number, from 1.
func (a *agenda) add(e entry) uint64 {
	a.entries++
	e.number = a.entries
	a.push(e)
	return e.number
}
