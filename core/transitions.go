package core

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/rule"
)

// Transition is a change from one state to another, and how often that happened.
type Transition struct {
	From, To string
	Count    uint64
}

// transitions counts changes of state.
type transitions struct {
	mu     sync.Mutex
	counts []Transition
}

func (t *transitions) add(from, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.counts, func(c Transition) bool { return c.From == from && c.To == to })
	if i < 0 {
		i = len(t.counts)
		t.counts = append(t.counts, Transition{From: from, To: to})
	}
	t.counts[i].Count++
}

func (t *transitions) snapshot() []Transition {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.counts)
}

// newTransitions returns a count for the limiter of a rule; nil if its kind has no
// states.
func newTransitions(r rule.Rule) *transitions {
	if len(r.Type().States()) == 0 {
		return nil
	}
	return new(transitions)
}
