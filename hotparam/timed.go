package hotparam

import (
	"sync"

	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/waitqueue"
)

// timedCalls are the calls that wait for a rule, on all of its resources, each for an instant of its own. They are
// known so that they can be released when the rule is gone: their order does not matter.
type timedCalls struct {
	mu    sync.Mutex
	calls waitqueue.Queue[timedCall] // mu guards it
}

// timedCall is one of them.
type timedCall struct {
	pending.Call
	of   uint64 // the salt of the resource that it waits for
	node waitqueue.Node[timedCall]
}

func (t *timedCalls) add(c *timedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls.Push(c, &c.node, 0)
}

// remove takes a call out whose wait ends; false if it was released before.
func (t *timedCalls) remove(c *timedCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.Waits() {
		return false
	}
	t.calls.Remove(&c.node)
	return true
}

// releaseAll lets go of the calls that wait for the resource with a salt, and returns them.
func (t *timedCalls) releaseAll(of uint64) (released []*timedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.calls.All() {
		if c.of == of {
			t.calls.Remove(&c.node)
			c.Release()
			released = append(released, c)
		}
	}
	return released
}
