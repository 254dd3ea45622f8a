package inspect

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Recharged is the answer to the action recharge of [ControlHandler].
type Recharged struct {
	// Left is how many tokens the balance has now, below 0 if more was taken than there was.
	Left int64 `json:"left"`
}

// recharge is the action that adds tokens to a balance.
const recharge = "recharge"

// mistakeInRecharge returns a mistake in the fields of a request to recharge a balance.
func mistakeInRecharge(form url.Values) string {
	switch _, err := strconv.ParseInt(form.Get("tokens"), 10, 64); {
	case form.Has("state"):
		return "state and action contradict each other: leave one out"
	case form.Get("rule") == "":
		return "rule is missing: name the one that has the balance"
	case form.Has("kind") && form.Get("kind") == "":
		return "kind is empty: name one, or leave the field out"
	case form.Has("resource") && form.Get("resource") == "":
		return "resource is empty: name one, or leave the field out"
	case !form.Has("tokens"):
		return "tokens is missing: say how many are added, as in tokens=1000"
	case err != nil:
		return fmt.Sprintf("tokens is %s: it is a whole number, below 0 to take some off", rule.Quote(form.Get("tokens")))
	case form.Has("engine") || form.Has("for"):
		return "engine and for are not for recharging"
	case form.Has("key") && (form.Get("key") == "" || form.Has("attr")):
		return "key is empty, or stands beside attr, which names the same: give one of them"
	}
	return ""
}

// recharge adds tokens to a balance.
func (h control) recharge(w http.ResponseWriter, r *http.Request, order core.Order) {
	call := Call{Resource: "any", Origin: r.Form.Get("origin")}
	var err error
	if call.Attributes, err = ParseAttributes(r.Form["attr"]); err == nil {
		err = call.Validate()
	}
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	key := rule.Key{Kind: rule.Kind(r.Form.Get("kind")), Name: r.Form.Get("rule")}
	options := call.options()
	if r.Form.Has("key") {
		options = append(options, core.Attributes((*onlyValue).of, &onlyValue{value: r.Form.Get("key")}))
	}
	tokens, _ := strconv.ParseInt(r.Form.Get("tokens"), 10, 64) // mistakeIn has found the mistakes
	left, err := h.engine.Recharge(r.Context(), key, r.Form.Get("resource"), tokens, order, options...)
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, Recharged{left})
}

// onlyValue is the value of the only attribute that a rule looks at, whichever that is.
type onlyValue struct{ value, key string }

// of returns the value of the attribute that is asked for first; others have none.
func (o *onlyValue) of(key string) rule.Attribute {
	if o.key == "" {
		o.key = key
	}
	if o.key != key {
		return rule.Attribute{}
	}
	return rule.ParseAttribute(o.value)
}

// balanceOf returns the state of a balance of the fleet as the store tells it; nil if the rule has none, or
// there is no answer.
func balanceOf(engine *core.Engine, of *core.RuleSnapshot, resource string, query RuleQuery) *rule.Quota {
	if !of.Rule.Fleet() {
		return nil
	}
	if of.Rule.Target().Shared {
		resource = ""
	}
	options := Call{Origin: query.Origin, Attributes: query.Attributes}.options()
	left, err := engine.Recharge(context.Background(), of.Rule.Key(), resource, 0, core.Order{}, options...)
	if err != nil {
		return nil
	}
	q := rule.Quota{Prepaid: true}
	if of.Quota != nil {
		q = *of.Quota
	}
	q.Remaining, q.Unknown = max(0, left), false
	return &q
}
