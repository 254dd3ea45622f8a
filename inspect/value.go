package inspect

import (
	"fmt"
	"math"
	"net/http"
	"net/url"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Values tells the state of one value: on each resource that has a state of its own, if it is not as
// new there.
type Values struct {
	RuleQuery

	States []ValueState `json:"states"`
}

// ValueState is what a limit knows of a value.
type ValueState struct {
	Resource string `json:"resource,omitempty"` // "" if several share the limit
	Value    string `json:"value"`              // perhaps cut, or the hash of a rule that masks values

	// Used is how many tokens are missing for the value to be as new; left out if that is not known.
	Used *float64 `json:"used,omitempty"`

	// Quota is what is left of the limit; nil if that is not known, or calls under way are limited.
	*Quota

	// InFlight is how many calls are under way, of Places, of a rule that limits them.
	InFlight *int64 `json:"inFlight,omitempty"`
	Places   int64  `json:"places,omitempty"`

	// Penalty is for how long all calls of the value are refused still, in seconds; 0 for none.
	Penalty float64 `json:"penalty,omitempty"`

	// Instance says that the limit is one of the whole fleet, and that this is what this instance
	// knows of it.
	Instance bool `json:"instance,omitempty"`
}

// valuesFor asks the engine about a value. It changes nothing.
func valuesFor(engine *core.Engine, query RuleQuery) (Values, error) {
	states, err := engine.ValueStates(rule.Key{Kind: query.Kind, Name: query.Rule}, query.options()...)
	if err != nil {
		return Values{}, err
	}
	values := Values{query, []ValueState{}}
	for _, s := range states {
		state := ValueState{Resource: s.Resource, Value: s.Value, Quota: quotaOf(s.Quota), Places: s.Places, Instance: s.Instance}
		if !math.IsNaN(s.Used) {
			state.Used = &s.Used
		}
		if s.Places > 0 {
			state.InFlight = &s.InFlight
		}
		state.Penalty = s.Penalty.Seconds()
		values.States = append(values.States, state)
	}
	return values, nil
}

func quotaOf(q *rule.Quota) *Quota {
	if q == nil {
		return nil
	}
	return &Quota{
		Effective: Ceiling(q.Effective), Window: q.Window.Seconds(), Prepaid: q.Prepaid,
		Remaining: q.Remaining, Reset: max(0, q.Reset).Seconds(), Unknown: q.Unknown,
	}
}

// parseValueQuery reads which value a request is about. It takes the attributes out of the form.
func parseValueQuery(form url.Values) (q RuleQuery, err error) {
	q = RuleQuery{Kind: rule.Kind(form.Get("kind")), Rule: form.Get("rule"), Origin: form.Get("origin")}
	if q.Kind == "" || q.Rule == "" {
		return q, fmt.Errorf("inspect: kind or rule is missing: name the rule that limits the value")
	}
	if q.Attributes, err = ParseAttributes(form["attr"]); err != nil {
		return q, err
	}
	return q, Call{Resource: q.Rule, Origin: q.Origin, Attributes: q.Attributes}.Validate()
}

// value answers a request about a value.
func (h handler) value(w http.ResponseWriter, r *http.Request) {
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil {
		known := url.Values{}
		for name, values := range form {
			if name != "attr" { // of which there may be several
				known[name] = values
			}
		}
		err = checkParameters(known, "kind", "rule", "origin", "attr")
	}
	var query RuleQuery
	if err == nil {
		query, err = parseValueQuery(form)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	values, err := valuesFor(h.engine, query)
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, values)
}
