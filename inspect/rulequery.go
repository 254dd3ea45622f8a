package inspect

import (
	"net/url"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// RuleQuery says of which rules somebody wants to know, and of which value of those that have a limit for each. What
// is "" selects all.
type RuleQuery struct {
	Resource string    `json:"resource,omitempty"` // as in [Limiter.Resource]; for limiters only
	Kind     rule.Kind `json:"kind,omitempty"`
	Rule     string    `json:"rule,omitempty"` // the name

	// Origin and Attributes are of a caller: with them, limits for each value of an attribute tell what
	// they know of that caller's value. Attributes are written as [rule.ParseAttribute] reads them; they
	// are not part of answers, for a rule may mask its values.
	Origin     string            `json:"origin,omitempty"`
	Attributes map[string]string `json:"-"`
}

// Query returns the query as [Handler] takes it, and as [ControlHandler] does with an action.
func (q RuleQuery) Query() url.Values {
	query := q.call().Query()
	for name, value := range map[string]string{"resource": q.Resource, "kind": string(q.Kind), "rule": q.Rule} {
		if value == "" {
			query.Del(name)
		} else {
			query.Set(name, value)
		}
	}
	return query
}

// call returns a call with what the query has of a caller.
func (q RuleQuery) call() Call { return Call{Origin: q.Origin, Attributes: q.Attributes} }

func (q RuleQuery) options() []core.Option { return q.call().options() }
