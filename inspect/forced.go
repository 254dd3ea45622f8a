package inspect

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// maxForced is how many forced states, and how many switches, a [Status] has at the most.
const maxForced = 1000

// Forced is a state that an operator has forced, see [core.Engine.Control], or a switch, see
// [core.Engine.Switch]: of one rule, of all rules of a kind, of a resource, or of all rules if it names none.
type Forced struct {
	Kind     rule.Kind `json:"kind,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Resource string    `json:"resource,omitempty"`

	State  string    `json:"state"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself; left out if it does not
}

// Scope returns what it is for, in words.
func (f *Forced) Scope() string {
	return core.Scope{Kind: f.Kind, Rule: f.Rule, Resource: f.Resource}.String()
}

func forcedOf(found []core.Forced, c clock.Clock) (list []Forced) {
	for _, f := range found[:min(len(found), maxForced)] {
		list = append(list, Forced{
			Kind: f.Kind, Rule: f.Rule, Resource: f.Resource, State: f.State, By: f.By, Reason: f.Reason,
			Since: timeOf(c, f.Since), Until: f.Until,
		})
	}
	return list
}
