package console

import (
	"context"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

// explanation says what rules would do to a call now.
type explanation struct {
	Rules []verdict `json:"rules"`
	Asked int       `json:"asked"` // instances that have answered
	Total int       `json:"total"`
}

// verdict is what one rule would do.
type verdict struct {
	Kind     rule.Kind `json:"kind"`
	Rule     string    `json:"rule"`
	Shadow   bool      `json:"shadow"`
	Off      int       `json:"off"` // instances on which it would refuse the call, and is switched off
	Document string    `json:"document,omitempty"`
	Line     int       `json:"line,omitempty"`

	// Refuses is on how many instances it is not off and refuses the call, and Why for what reason on one of them.
	Refuses int    `json:"refuses"`
	Why     string `json:"why,omitempty"`

	// RetryAfter is the longest time, in seconds, until such a call passes; 0 if it is not known.
	RetryAfter float64 `json:"retryAfter,omitempty"`
}

// explain asks all instances about a call, which is not made.
func (h *handler) explain(r request) (any, error) {
	call := inspect.Call{Resource: r.query.Get("resource"), Origin: r.query.Get("origin")}
	var err error
	if call.Attributes, err = inspect.ParseAttributes(slices.DeleteFunc(r.query["attr"], func(a string) bool { return a == "" })); err != nil {
		return nil, errRequest{strings.TrimPrefix(err.Error(), "inspect: ")}
	}
	if err := call.Validate(); err != nil {
		return nil, errRequest{strings.TrimPrefix(err.Error(), "inspect: ")}
	}
	all, err := h.fleet.list(r.Context())
	if err != nil {
		return nil, err
	}
	var once gatherer[inspect.Explanation]
	answers := once.ask(r.Context(), all, func(ctx context.Context, i instance) (e inspect.Explanation, err error) {
		return e, i.ask(ctx, "explain", call.Query(), &e)
	})
	e := explanation{Rules: []verdict{}, Total: len(all)}
	for _, a := range answers {
		if a.err == "" {
			e.Asked++
			e.add(a.value.Rules, h.firstState)
		}
	}
	return e, nil
}

// add adds what the rules of an instance would do.
func (e *explanation) add(rules []inspect.Rule, firstState func(rule.Kind) string) {
	for n := range rules {
		r := &rules[n]
		i := slices.IndexFunc(e.Rules, func(v verdict) bool { return v.Kind == r.Kind && v.Rule == r.Name })
		if i < 0 {
			i = len(e.Rules)
			e.Rules = append(e.Rules, verdict{Kind: r.Kind, Rule: r.Name, Shadow: r.Shadow, Document: r.Document, Line: r.Line})
		}
		if why := refusal(r.State, firstState(r.Kind)); why != "" {
			v := &e.Rules[i]
			if r.Off {
				v.Off++
			} else {
				v.Refuses++
			}
			v.Why, v.RetryAfter = why, max(v.RetryAfter, r.State.RetryAfter)
		}
	}
}

// refusal says why a rule would refuse a call now, "" if it would not. The first state is that in which rules of the kind
// begin.
func refusal(of *inspect.State, first string) string {
	if of == nil {
		return ""
	}
	switch g := gaugeOf(of); {
	case of.State != first && (of.CannotPass || of.RetryAfter > 0):
		return "its state is " + of.State
	case of.CannotPass:
		return "such a call never passes under this rule"
	case of.RetryAfter > 0:
		return "nothing is left for such a call"
	case of.Quota != nil && !of.Unknown && of.Remaining <= 0 && !of.Effective.IsInfinite():
		return "nothing is left of the limit"
	case of.Quota == nil && g != nil && g.Used >= g.Limit:
		return "as many calls are under way as may be"
	}
	return ""
}
