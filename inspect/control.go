package inspect

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// ControlHandler returns a handler that forces the state of rules of the engine, of
// [penstock.Default] if that is nil: that opens a circuit breaker by hand, for
// instance, or stops a fault from being injected. It answers POST requests with the form
// fields kind, rule and state, in the body or the query:
//
//	curl -X POST '127.0.0.1:6060/control?kind=breaker&rule=pay-errors&state=open'
//	curl -X POST '127.0.0.1:6060/control?kind=fault&state=off'
//
// With action in place of state it acts on one value of a rule that limits each value: the attributes
// of the value are given as attr, one for each key, and origin if the rule looks at that. The actions
// are reset and lift, see [core.Engine.ResetValue] and
// [core.Engine.LiftPenalty]:
//
//	curl -X POST '127.0.0.1:6060/control?kind=hotParam&rule=per-user&attr=user=alice&action=reset'
//
// The action recharge adds tokens to a balance, of a rule with algorithm prepaid, or takes some off if the
// number is below 0; resource says of which resource, if each that matches has one, and key is short for
// attr with the only attribute of the rule. It is answered with [Recharged]: 0 tokens ask what is left. See
// [core.Engine.Recharge], also for when it fails:
//
//	curl -X POST '127.0.0.1:6060/control?kind=hotParam&rule=credit&attr=tenant=acme&action=recharge&tokens=1000'
//
// With switch in place of state it switches rules off or on, so that a wrong one lets calls pass, see
// [core.Engine.Switch]: off, on, or nothing to release them. It is for the rule, which kind tells from one
// of the same name, for all rules of a kind, for a resource, or for all rules with engine=true:
//
//	curl -X POST '127.0.0.1:6060/control?rule=per-user&switch=off&for=10m&by=alice&reason=wrong+limit'
//	curl -X POST '127.0.0.1:6060/control?resource=orders:create&switch='
//
// With at, the nanoseconds since 1970 at which a switch was ordered, it is answered with 409 if one that was ordered
// later has come for the same within 15 seconds before: of two orders that are sent to many instances at once, the
// same one is the last on each.
//
// Who forces a state or a switch can say who they are with by, to which the address of the client is
// added, why with reason, and for how long with for: it then ends by itself.
//
// Without the field rule, the state of all rules of the kind is forced, those that come
// later too. So a rule that is empty is a mistake, as are other fields and a body that is
// no form. A state that is empty releases what was forced; see [core.Engine.Control] and
// [core.Engine.ControlKind]. Else the answer is 204, or a 4xx and a [Failure]. The command line
// has "penstock control" for it.
//
// Whoever reaches the handler can stop a service. It is apart from [Handler] so that a
// program has to mount it on purpose: on a listener that only operators reach, and with a
// [Options.Tokens] if others may reach it too. What browsers send for other sites is refused:
// requests from another origin, and requests for a host that is neither an address nor localhost
// nor one of [Options.Hosts], since anybody can have a name of their own point to the address of
// the service.
func ControlHandler(engine *core.Engine, options Options) http.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	return options.callers().guard(http.NewCrossOriginProtection().Handler(control{engine, new(latestOrders)}))
}

type control struct {
	engine *core.Engine
	orders *latestOrders
}

// controlFields are the fields of a request.
const controlFields = " kind rule state switch resource engine for by reason at action attr origin key tokens "

// maxBy is how many bytes of the field by are used, so that the address is not cut off behind them.
const maxBy = 100

// ServeHTTP implements [http.Handler].
func (h control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		answer(w, http.StatusMethodNotAllowed, Failure{"inspect: only POST is answered"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	if err := r.ParseForm(); err != nil {
		answer(w, http.StatusBadRequest, Failure{"inspect: " + err.Error()})
		return
	}
	if n, _ := io.CopyN(io.Discard, r.Body, 1); n > 0 { // what it says is not in the form
		answer(w, http.StatusUnsupportedMediaType, Failure{"inspect: the body is no form: send it as application/x-www-form-urlencoded"})
		return
	}
	if mistake := mistakeIn(r.Form); mistake != "" {
		answer(w, http.StatusBadRequest, Failure{"inspect: " + mistake})
		return
	}
	if r.Form.Has("action") && r.Form.Get("action") != recharge {
		h.controlValue(w, r.Form)
		return
	}
	order, err := orderIn(r)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{"inspect: " + err.Error()})
		return
	}
	if r.Form.Has("action") {
		h.recharge(w, r, order)
		return
	}
	switch err := h.control(r.Form, order); {
	case errors.Is(err, errLaterOrder):
		answer(w, http.StatusConflict, Failure{err.Error()})
	case err != nil:
		answer(w, http.StatusUnprocessableEntity, Failure{err.Error()})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// mistakeIn returns a mistake in the fields of a request, "" if there is none. A field that
// is not known is one, or a rule whose field is misspelled would be all rules.
func mistakeIn(form url.Values) string {
	for _, field := range slices.Sorted(maps.Keys(form)) {
		switch {
		case strings.ContainsRune(field, ' ') || !strings.Contains(controlFields, " "+field+" "):
			return fmt.Sprintf("%s is not a field: there are kind, rule, state, for, by and reason, to switch rules off switch,"+
				" resource, engine and at, and for one value action, attr, origin, key and tokens", rule.Quote(field))
		case len(form[field]) > 1 && field != "attr":
			return fmt.Sprintf("%s is given %d times: give it once", field, len(form[field]))
		}
	}
	switch {
	case form.Has("switch"):
		return mistakeInSwitch(form)
	case form.Get("action") == recharge:
		return mistakeInRecharge(form)
	case form.Has("tokens") || form.Has("key"):
		return "tokens and key are for the action recharge"
	case form.Has("at"):
		return "at is for a switch: it says when that was ordered"
	case form.Has("resource") || form.Has("engine"):
		return "resource and engine say what is switched: say how with switch=off, switch=on or switch="
	case form.Get("kind") == "":
		return "kind is missing: name the kind of the rules whose state is to be forced"
	case form.Has("rule") && form.Get("rule") == "":
		return "rule is empty: name one, or leave the field out to force all rules of the kind"
	case form.Has("action"):
		return mistakeInAction(form)
	case form.Has("attr") || form.Has("origin"):
		return "attr and origin say which value an action is for: name an action, reset or lift"
	case !form.Has("state"):
		return "state is missing: name one, or leave it empty to release the rule"
	}
	return ""
}

// mistakeInSwitch returns a mistake in the fields of a request with a switch. A field that is empty is one, or
// a name that is missing would be that of all.
func mistakeInSwitch(form url.Values) string {
	scopes := 0
	for _, field := range []string{"kind", "rule", "resource", "engine"} {
		switch {
		case form.Has(field) && form.Get(field) == "":
			return field + " is empty: name one, or leave the field out"
		case form.Has(field) && (field != "kind" || !form.Has("rule")):
			scopes++
		}
	}
	for _, field := range []string{"state", "action", "attr", "origin", "key", "tokens"} {
		if form.Has(field) {
			return field + " and switch contradict each other: leave one out"
		}
	}
	switch {
	case scopes == 0:
		return "what is to be switched? Name a rule, a kind or a resource, or say engine=true for all rules"
	case scopes > 1:
		return "a rule, a kind, a resource and engine=true are different scopes: name one"
	case form.Has("engine") && form.Get("engine") != "true":
		return "engine must be true, or left out"
	}
	_, err := givenAt(form)
	return textOf(err)
}

// mistakeInAction returns a mistake in the fields of a request with an action.
func mistakeInAction(form url.Values) string {
	switch {
	case form.Has("state"):
		return "state and action contradict each other: leave one out"
	case form.Get("rule") == "":
		return "rule is missing: name the one that limits the value"
	case !form.Has("attr") && !form.Has("origin"):
		return "attr is missing: say which value, as in attr=user=alice"
	}
	return ""
}

// controlValue acts on one value of a rule.
func (h control) controlValue(w http.ResponseWriter, form url.Values) {
	query, err := parseValueQuery(form)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	key := rule.Key{Kind: query.Kind, Name: query.Rule}
	act := h.engine.ResetValue
	switch action := form.Get("action"); action {
	case "reset":
	case "lift":
		act = h.engine.LiftPenalty
	default:
		act = func(rule.Key, ...core.Option) error {
			return fmt.Errorf("inspect: %q cannot be done to a value: there are reset and lift", action)
		}
	}
	if err := act(key, query.options()...); err != nil {
		answer(w, http.StatusUnprocessableEntity, Failure{err.Error()})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// control forces the state of a rule, or of all rules of a kind if it has no name, or switches rules.
func (h control) control(form url.Values, order core.Order) error {
	scope := core.Scope{Kind: rule.Kind(form.Get("kind")), Rule: form.Get("rule")}
	if !form.Has("switch") {
		return h.engine.Control(scope, form.Get("state"), order)
	}
	scope.Resource = form.Get("resource")
	at, _ := givenAt(form) // without a mistake
	return h.orders.do(scopeOf(form), at, h.engine.Clock().Now(), func() error {
		return h.engine.Switch(scope, form.Get("switch"), order)
	})
}

// orderIn returns who sends a request, why, and for how long.
func orderIn(r *http.Request) (core.Order, error) {
	order := core.Order{Reason: r.Form.Get("reason"), By: "somebody"}
	if by := r.Form.Get("by"); by != "" {
		order.By = by[:min(len(by), maxBy)]
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		order.By += " at " + host
	}
	if text := r.Form.Get("for"); r.Form.Has("for") {
		var err error
		if order.For, err = time.ParseDuration(text); err != nil || order.For <= 0 {
			return core.Order{}, fmt.Errorf("for is %s: it is how long, such as 10m; leave it out for until it is released", rule.Quote(text))
		}
	}
	return order, nil
}
