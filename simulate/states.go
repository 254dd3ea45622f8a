package simulate

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// stateChanged records that a rule of an instance changed its state.
func (s *simulation) stateChanged(i *instance, change core.StateChange) {
	s.states = append(s.states, StateChange{
		T: seconds(change.At.Sub(s.begin)), Resource: change.Resource,
		Rule: change.Rule, Kind: string(change.Kind), From: change.From, To: change.To,
		Instance: s.label(i),
	})
}

// finishStates puts the changes of state in order. Some are found later than they
// happened, with the next call or, after the last one, when the engine is looked at.
func (s *simulation) finishStates() {
	for _, i := range s.instances {
		i.engine.Snapshot()
	}
	slices.SortStableFunc(s.states, func(a, b StateChange) int { return cmp.Compare(a.T, b.T) })
}
