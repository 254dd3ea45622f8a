package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// maxQuotas is how many limits [Quotas] has at the most.
const maxQuotas = 1000

// Quotas are the limits on how much passes in a time, with what is left of them.
type Quotas struct {
	RuleQuery

	Time time.Time `json:"time"` // of the answer

	// Quotas are at most 1,000, by kind, rule and resource.
	Quotas []QuotaState `json:"quotas"`

	// MoreQuotas counts those that are left out.
	MoreQuotas int `json:"moreQuotas,omitempty"`
}

// QuotaState is what is left of one limit.
type QuotaState struct {
	Kind   rule.Kind `json:"kind"`
	Rule   string    `json:"rule"`
	Shadow bool      `json:"shadow,omitempty"`
	Off    bool      `json:"off,omitempty"` // it is switched off here

	Resource string `json:"resource,omitempty"` // the pattern, if several share the limit; of values ""
	Value    string `json:"value,omitempty"`    // perhaps cut, or the hash of a rule that masks values

	Limit float64 `json:"limit"` // of the rule, or of the value, in tokens per window
	Quota

	// Used is how many tokens the window has counted, of all instances if it is of the fleet, or a bucket
	// lacks of being full; nil of balances, leases and queues that space calls.
	Used *float64 `json:"used,omitempty"`

	// ResetsAt is when there is more, by the clock of the service; left out if that is not known, or
	// nothing is used.
	ResetsAt time.Time `json:"resetsAt,omitzero"`

	// Fleet says that the limit is for all instances of the service together: what is left is what
	// this instance knows of it.
	Fleet bool `json:"fleet,omitempty"`

	// Penalty is for how long all calls of the value are refused still, in seconds; 0 for none.
	Penalty float64 `json:"penalty,omitempty"`
}

// QuotasOf asks the engine what is left of its limits. It changes nothing. Limits for each value of an
// attribute are left out unless the query has all that they look at; the error says what a rule that
// the query names lacks. Limits of resources that were never called are left out.
func quotasOf(engine *core.Engine, query RuleQuery) (Quotas, error) {
	now := engine.Clock().Now()
	found := Quotas{RuleQuery: query, Time: timeOf(engine.Clock(), now), Quotas: []QuotaState{}}
	byValue, known := map[rule.Key]core.RuleSnapshot{}, false
	for resource, of := range engine.RuleStates(query.includes) {
		known = true
		switch {
		case len(of.Rule.Attributes()) > 0:
			byValue[of.Rule.Key()] = of
		case of.Quota != nil:
			if of.Quota.Prepaid {
				of.Quota = cmp.Or(balanceOf(engine, &of, resource, query), of.Quota)
			}
			found.add(&of, of.Quota, QuotaState{Resource: resource})
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(byValue), compareKeys) {
		of := byValue[key]
		states, err := engine.ValueStates(key, Call{Origin: query.Origin, Attributes: query.Attributes}.options()...)
		if err != nil && query.Rule != "" {
			return Quotas{}, err
		}
		for _, s := range states {
			if s.Quota == nil || s.Quota.Unknown {
				s.Quota = cmp.Or(balanceOf(engine, &of, s.Resource, query), s.Quota)
			}
			if s.Quota != nil {
				found.add(&of, s.Quota, QuotaState{
					Resource: s.Resource, Value: s.Value, Penalty: s.Penalty.Seconds(),
				})
			}
		}
	}
	if query.Rule != "" && !known {
		return Quotas{}, fmt.Errorf("inspect: no rule %s is in force on a resource that was called", rule.Quote(query.Rule))
	}
	found.order()
	return found, nil
}

// includes says whether the query selects the rule.
func (q RuleQuery) includes(r rule.Rule) bool {
	key := r.Key()
	return (q.Kind == "" || q.Kind == key.Kind) && (q.Rule == "" || q.Rule == key.Name)
}

// add adds a limit of a rule.
func (s *Quotas) add(of *core.RuleSnapshot, q *rule.Quota, state QuotaState) {
	state.Kind, state.Rule, state.Shadow, state.Off = of.Kind, of.Name, of.Shadow, of.Off
	state.Quota, state.Limit, state.Fleet = *quotaOf(q), q.Limit, of.Rule.Fleet()
	if _, known := q.UsedRatio(); known && !q.Prepaid {
		state.Used = &q.Used
	}
	if q.Reset > 0 {
		state.ResetsAt = s.Time.Add(q.Reset)
	}
	s.Quotas = append(s.Quotas, state)
}

// order brings the limits into their order, and leaves out those beyond the bound.
func (s *Quotas) order() {
	slices.SortFunc(s.Quotas, func(a, b QuotaState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Resource, b.Resource))
	})
	if more := len(s.Quotas) - maxQuotas; more > 0 {
		s.Quotas, s.MoreQuotas = s.Quotas[:maxQuotas], more
	}
}

func compareKeys(a, b rule.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// parseQuotaQuery reads which limits a request asks about.
func parseQuotaQuery(raw string) (q RuleQuery, err error) {
	form, err := url.ParseQuery(raw)
	if err != nil {
		return q, fmt.Errorf("inspect: %w", err)
	}
	attributes := form["attr"]
	form.Del("attr") // of which there may be several
	if err := checkParameters(form, "kind", "rule", "origin", "attr"); err != nil {
		return q, err
	}
	q = RuleQuery{Kind: rule.Kind(form.Get("kind")), Rule: form.Get("rule"), Origin: form.Get("origin")}
	if q.Attributes, err = ParseAttributes(attributes); err != nil {
		return q, err
	}
	return q, Call{Resource: "any", Origin: q.Origin, Attributes: q.Attributes}.Validate()
}

// quotas answers a request about limits.
func (h handler) quotas(w http.ResponseWriter, r *http.Request) {
	query, err := parseQuotaQuery(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	found, err := quotasOf(h.engine, query)
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, found)
}
