package fairqueue

import "math/bits"

// history remembers tenants that do not wait: the tag at which they stopped, if they have had more
// than their share, and what their calls cost. Without it a client that always has one call would
// be a new one each time, and be served before all that wait. It is a table of fixed size, in lines of
// four; a tenant for which there is no space takes that of the one with the least tag in its line, and
// nothing of what that one owes.
type history struct {
	lines []line
	swept int64 // the virtual time at which tags that are long past were last raised
}

// line is one line of the cache of a processor.
type line [4]entry

// entry is a tenant.
type entry struct {
	name   uint32 // 25 bits of the key, a bit that is set, and 6 bits for the number of calls
	cost   float32
	finish int64
}

const (
	callBits = 6
	maxCalls = 1<<callBits - 1
	isUsed   = 1 << callBits

	leastLines = 1 << 6
	mostLines  = 1 << 12

	// A tag that is further from the virtual time than an integer can say would seem to be on the
	// other side of it.
	sweepAfter = 1 << 60
)

func newHistory(remembered int) history {
	lines := 1 << bits.Len(uint(max(remembered-1, 0)/4))
	return history{lines: make([]line, min(max(lines, leastLines), mostLines))}
}

func nameOf(key uint64) uint32 { return uint32(key>>32)&^(1<<(callBits+1)-1) | isUsed }

func (h *history) line(key uint64) *line { return &h.lines[key&uint64(len(h.lines)-1)] }

// find returns the entry of a tenant; nil if there is none.
func (h *history) find(key uint64) *entry {
	l, name := h.line(key), nameOf(key)
	for i := range l {
		if l[i].name&^maxCalls == name {
			return &l[i]
		}
	}
	return nil
}

// add makes an entry for a tenant that has none.
func (h *history) add(key uint64, virtual int64) *entry {
	l := h.line(key)
	place := &l[0]
	for i := range l {
		e := &l[i]
		if e.name == 0 {
			place = e
			break
		}
		if e.finish-place.finish < 0 {
			place = e
		}
	}
	*place = entry{name: nameOf(key), finish: virtual}
	return place
}

// sweep raises all tags that are before the virtual time, which are worth nothing.
func (h *history) sweep(virtual int64) {
	h.swept = virtual
	for i := range h.lines {
		for j := range h.lines[i] {
			if e := &h.lines[i][j]; e.finish-virtual < 0 {
				e.finish = virtual
			}
		}
	}
}

func (e *entry) calls() uint32 { return e.name & maxCalls }

// learn takes note of what a call has cost.
func (e *entry) learn(cost int64) {
	if e.calls() < maxCalls {
		e.name++
	}
	e.cost += (float32(cost) - e.cost) / float32(e.calls())
}
