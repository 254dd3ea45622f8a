package inspect

import (
	"encoding/json"
	"net/http"
	"path"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Handler returns a handler that tells about the engine, about
// [penstock.Default] if that is nil. It answers GET requests by the last part of
// their path:
//
//	status                                  a [Status]
//	limiters?resource=…&kind=…&rule=…       [Limiters]; all parameters may be left out
//	ready                                   a [Readiness], with the status 503 unless it is ready
//	explain?resource=…&origin=…&attr=key=…  an [Explanation]
//	value?kind=…&rule=…&attr=key=…          [Values]: what a rule knows of one value, such as one user
//
// as JSON. What it cannot answer gets a 4xx and a [Failure].
func Handler(engine *core.Engine) http.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	return handler{engine}
}

// Failure is the answer to a request that cannot be answered.
type Failure struct {
	Error string `json:"error"` // what is wrong with the request
}

type handler struct{ engine *core.Engine }

// ServeHTTP implements [http.Handler].
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, Failure{"inspect: only GET is answered"})
		return
	}
	switch path.Base(r.URL.Path) {
	case "status":
		answer(w, http.StatusOK, StatusWithShares(r.Context(), h.engine))
	case "limiters":
		h.limiters(w, r)
	case "ready":
		h.ready(w)
	case "explain":
		h.explain(w, r)
	case "value":
		h.value(w, r)
	default:
		answer(w, http.StatusNotFound, Failure{"inspect: ask for status, ready or explain?resource=…, for limiters, or for value?kind=…&rule=…&attr=…"})
	}
}

func (h handler) ready(w http.ResponseWriter) {
	readiness, code := ReadinessOf(h.engine), http.StatusOK
	if !readiness.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, readiness)
}

func (h handler) limiters(w http.ResponseWriter, r *http.Request) {
	selection, err := parseSelection(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, LimitersOf(h.engine, selection))
}

func (h handler) explain(w http.ResponseWriter, r *http.Request) {
	call, err := parseCall(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, Explain(h.engine, call))
}

func answer(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content) // the client may be gone
}
