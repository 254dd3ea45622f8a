package serve

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// holds is the calls under way that proxies have to end: those that rules with a maxAge count. A call
// that nobody ends is held for as long as these rules count it. Calls of the same
// key are ended in the order in which they passed.
type holds struct {
	most int

	mu    sync.Mutex // guards what follows
	byKey map[holdKey][]*hold
	queue holdQueue
}

// holdKey identifies the calls that a descriptor stands for: it is a SHA-256, as clients choose the
// entries.
type holdKey [sha256.Size]byte

// hold is a call under way.
type hold struct {
	guard *core.Guard
	key   holdKey
	until clock.Instant
	place int // in the queue; -1 once it is there no more
}

// keyOf returns the key of the calls of a descriptor.
func (c *descriptorCall) keyOf() (key holdKey) {
	sum := sha256.New()
	write := func(text string) {
		sum.Write(binary.AppendUvarint(nil, uint64(len(text))))
		sum.Write([]byte(text))
	}
	write(c.domain.Name)
	for _, e := range c.entries {
		write(e.GetKey())
		write(e.GetValue())
	}
	sum.Sum(key[:0])
	return key
}

// hold keeps a call under way until it is ended; nil if there are too many already.
func (h *holds) hold(key holdKey, guard *core.Guard, now clock.Instant, within time.Duration) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire(now)
	if len(h.queue) >= h.most {
		return nil
	}
	of := &hold{guard: guard, key: key, until: now.Add(within)}
	if h.byKey == nil {
		h.byKey = make(map[holdKey][]*hold)
	}
	h.byKey[key] = append(h.byKey[key], of)
	heap.Push(&h.queue, of)
	return of
}

// drop forgets a call that has taken nothing in the end.
func (h *holds) drop(of *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of.place >= 0 {
		heap.Remove(&h.queue, of.place)
		h.forget(of)
	}
}

// end ends the call of a key that is under way the longest, if there is one.
func (h *holds) end(key holdKey, now clock.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expire(now)
	alike := h.byKey[key]
	if i := slices.IndexFunc(alike, func(of *hold) bool { return of.until > now }); i >= 0 {
		of := alike[i]
		heap.Remove(&h.queue, of.place)
		h.forget(of)
		of.guard.Exit()
	}
}

// expiredAtOnce is how many calls are ended together that nobody has ended: as others wait meanwhile, few.
const expiredAtOnce = 64

// expire ends calls whose time is over: how they have ended is unknown. Rules do not count them any more.
func (h *holds) expire(now clock.Instant) {
	for range expiredAtOnce {
		if len(h.queue) == 0 || h.queue[0].until > now {
			return
		}
		of := heap.Pop(&h.queue).(*hold)
		h.forget(of)
		of.guard.MarkIgnored()
		of.guard.Exit()
	}
}

// forget forgets a call that is in the queue no more.
func (h *holds) forget(of *hold) {
	left := h.byKey[of.key]
	if left[0] == of { // as nearly always
		left[0] = nil
		left = left[1:]
	} else {
		left = slices.DeleteFunc(left, func(other *hold) bool { return other == of })
	}
	if h.byKey[of.key] = left; len(left) == 0 {
		delete(h.byKey, of.key)
	}
}

// holdQueue is a heap of calls by the instants at which they end at the latest.
type holdQueue []*hold

func (q holdQueue) Len() int           { return len(q) }
func (q holdQueue) Less(i, j int) bool { return q[i].until < q[j].until }

func (q holdQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push is for package heap.
func (q *holdQueue) Push(x any) {
	of := x.(*hold)
	of.place = len(*q)
	*q = append(*q, of)
}

// Pop is for package heap.
func (q *holdQueue) Pop() any {
	last := len(*q) - 1
	of := (*q)[last]
	(*q)[last], of.place = nil, -1
	*q = (*q)[:last]
	return of
}
