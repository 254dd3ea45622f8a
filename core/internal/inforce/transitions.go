package inforce

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/rule"
)

// Transition is what core.Transition is.
type Transition struct {
	From, To string
	Count    uint64
}

// Transitions counts changes of state.
type Transitions struct {
	mu     sync.Mutex
	counts []Transition
}

// Add counts a change.
func (t *Transitions) Add(from, to string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.counts, func(c Transition) bool { return c.From == from && c.To == to })
	if i < 0 {
		i = len(t.counts)
		t.counts = append(t.counts, Transition{From: from, To: to})
	}
	t.counts[i].Count++
}

// Snapshot returns the changes, in no order.
func (t *Transitions) Snapshot() []Transition {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.counts)
}

// NewTransitions returns a count for the limiter of a rule; nil if its kind has no
// states.
func NewTransitions(r rule.Rule) *Transitions {
	if len(r.Type().States()) == 0 {
		return nil
	}
	return new(Transitions)
}
