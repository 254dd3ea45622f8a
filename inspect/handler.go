package inspect

import (
	"encoding/json"
	"net/http"
	"path"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Handler returns a handler that tells about the engine, about
// [penstock.Default] if that is nil. It answers GET requests by the last part of
// their path:
//
//	status?limiters=…                       a [Status]; with limiters=changed of limiters only those
//	                                        that are not in their first state, such as open breakers
//	limiters?resource=…&kind=…&rule=…       [Limiters]; all parameters may be left out
//	ready                                   a readiness, with the status 503 unless it is ready
//	explain?resource=…&origin=…&attr=key=…  an [Explanation]
//	resources?match=…&sort=…&limit=…        [Resources]; see [ResourceQuery] for all parameters
//	resources/NAME                          a [ResourceDetail], see [ResourcePath]
//	events?since=…                          [Events] that came after the one with that ID
//	stream?top=…&match=…&sort=…&since=…     both as they happen, as server-sent events: see [StreamPage]
//	quotas?kind=…&rule=…&attr=key=…         [Quotas]: what is used and left of limits, of a value too
//	value?kind=…&rule=…&attr=key=…          [Values]: what a rule knows of one value, such as one user
//	recording?for=…                         recorded calls, if [Options.Recordings] allows it
//
// as JSON, but for the last. What it cannot answer gets a 4xx and a [Failure].
func Handler(engine *core.Engine, options Options) http.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	h := handler{engine: engine, recent: new(recentTimes), orders: new(resourceOrders), changed: new(changedLimiters), streams: new(streams)}
	if options.Recordings {
		h.recordings = newRecordings(options.Name)
	}
	callers := options.callers()
	callers.anyHost = options.Hosts == nil && options.Tokens == nil
	return callers.guard(h)
}

// Failure is the answer to a request that cannot be answered.
type Failure struct {
	Error string `json:"error"` // what is wrong with the request
}

type handler struct {
	engine  *core.Engine
	recent  *recentTimes
	orders  *resourceOrders
	changed *changedLimiters
	streams *streams

	recordings *recordings // nil if it gives none
}

// ServeHTTP implements [http.Handler].
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !onlyGet(w, r) {
		return
	}
	if name, ok := nameIn(r.URL); ok {
		h.resource(w, r, name)
		return
	}
	switch path.Base(r.URL.Path) {
	case "status":
		h.status(w, r)
	case "limiters":
		h.limiters(w, r)
	case "ready":
		h.ready(w)
	case "explain":
		h.explain(w, r)
	case "value":
		h.value(w, r)
	case "quotas":
		h.quotas(w, r)
	case resourcesPath:
		h.resources(w, r)
	case "events":
		h.events(w, r)
	case "stream":
		h.stream(w, r)
	case "recording":
		h.recording(w, r)
	default:
		answer(w, http.StatusNotFound, Failure{
			"inspect: ask for status, ready or explain?resource=…, for limiters, quotas, resources, events or stream, or for value?kind=…&rule=…&attr=…",
		})
	}
}

func (h handler) status(w http.ResponseWriter, r *http.Request) {
	switch of := r.URL.Query().Get("limiters"); of {
	case "":
		answer(w, http.StatusOK, statusWithShares(r.Context(), h.engine))
	case "changed":
		answer(w, http.StatusOK, withShares(r.Context(), h.engine, statusOf(h.engine, h.changed.limiters(h.engine))))
	default:
		answer(w, http.StatusBadRequest, Failure{"inspect: limiters is " + rule.Quote(of) + `: it is "changed", or left out`})
	}
}

// onlyGet answers requests that are not GET ones, and says whether the request is one.
func onlyGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	answer(w, http.StatusMethodNotAllowed, Failure{"inspect: only GET is answered"})
	return false
}

func (h handler) ready(w http.ResponseWriter) {
	readiness, code := readinessOf(h.engine), http.StatusOK
	if !readiness.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, readiness)
}

func (h handler) limiters(w http.ResponseWriter, r *http.Request) {
	query, err := parseLimiterQuery(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, limitersOf(h.engine, query, false))
}

func (h handler) explain(w http.ResponseWriter, r *http.Request) {
	call, err := parseCall(r.URL.RawQuery)
	if err != nil {
		answer(w, http.StatusBadRequest, Failure{err.Error()})
		return
	}
	answer(w, http.StatusOK, Explain(h.engine, call))
}

// ContentWriter is a writer of responses that takes what a [Handler] answers as a value, such as a [Status], in
// place of its JSON: for those who ask the handler of their own process. They must not change what it holds.
type ContentWriter interface {
	http.ResponseWriter

	// WriteContent is called once, in place of WriteHeader and Write.
	WriteContent(code int, content any)
}

func answer(w http.ResponseWriter, code int, content any) {
	if to, ok := w.(ContentWriter); ok {
		to.WriteContent(code, content)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content) // the client may be gone
}
