package inspect

import (
	"net/http"

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
// Without the field rule, the state of all rules of the kind is forced, those that come
// later too; a field that is empty is a mistake. A state that is empty releases what was
// forced; see [core.Engine.Control] and [core.Engine.ControlKind]. The answer is 204, or a
// 4xx and a [Failure]. The command line has "penstock control" for it.
//
// Whoever reaches the handler can stop a service. It is apart from [Handler] so that a
// program has to mount it on purpose: on a listener that only operators reach. Requests
// that a browser sends from another site are refused.
func ControlHandler(engine *core.Engine) http.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	return http.NewCrossOriginProtection().Handler(control{engine})
}

type control struct{ engine *core.Engine }

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
	key := rule.Key{Kind: rule.Kind(r.Form.Get("kind")), Name: r.Form.Get("rule")}
	switch {
	case key.Kind == "":
		answer(w, http.StatusBadRequest, Failure{"inspect: kind is missing: name the kind of the rules whose state is to be forced"})
	case key.Name == "" && r.Form.Has("rule"):
		answer(w, http.StatusBadRequest, Failure{"inspect: rule is empty: name one, or leave the field out to force all rules of the kind"})
	case !r.Form.Has("state"):
		answer(w, http.StatusBadRequest, Failure{"inspect: state is missing: name one, or leave it empty to release the rule"})
	default:
		if err := h.control(key, r.Form.Get("state")); err != nil {
			answer(w, http.StatusUnprocessableEntity, Failure{err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// control forces the state of a rule, or of all rules of a kind if it has no name.
func (h control) control(key rule.Key, state string) error {
	if key.Name == "" {
		return h.engine.ControlKind(key.Kind, state)
	}
	return h.engine.Control(key, state)
}
