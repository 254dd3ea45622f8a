package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/penstock-go/penstock/rules"
)

// maxBody is how many bytes a request may have: a document, as JSON writes it.
const maxBody = 8 << 20

// handler serves the console.
type handler struct {
	Options
	fleet  *instances
	assets assets
	topics *topics

	statuses *statuses
	trying   chan struct{} // has one while rules are tried
	kinds    *rules.Table
}

// Handler returns a handler that serves the console, below any path that ends in a slash. What it does in
// the background ends when nobody looks.
func Handler(o Options) http.Handler {
	h := &handler{
		Options: o.complete(), assets: readAssets(), topics: newTopics(),
		trying: make(chan struct{}, 1),
	}
	h.kinds = h.table()
	h.fleet = newInstances(&h.Options)
	h.statuses = &statuses{fleet: h.fleet}
	return h.guarded()
}

// action answers a request of the page, which it gives to fn if the role may.
type action struct {
	method string
	least  Role
	fn     func(h *handler, r request) (any, error)
}

// request is a request of somebody who is known.
type request struct {
	*http.Request
	who   Identity
	role  Role
	query url.Values
}

// actions are what the page can ask, beside the streams.
func actions() map[string]action {
	return map[string]action{
		"me":       {http.MethodGet, Viewer, (*handler).me},
		"explain":  {http.MethodGet, Viewer, (*handler).explain},
		"kinds":    {http.MethodGet, Viewer, (*handler).fieldsOfKinds},
		"document": {http.MethodGet, Viewer, (*handler).document},
		"revision": {http.MethodGet, Viewer, (*handler).revision},
		"lookup":   {http.MethodGet, Viewer, (*handler).lookUp},
		"check":    {http.MethodPost, Viewer, (*handler).check},
		"try":      {http.MethodPost, Operator, (*handler).try},
		"push":     {http.MethodPost, Editor, (*handler).push},
		"rollback": {http.MethodPost, Editor, (*handler).rollBack},
		"confirm":  {http.MethodPost, Operator, (*handler).confirm},
		"switch":   {http.MethodPost, Operator, (*handler).switchRules},
		"recharge": {http.MethodPost, Operator, (*handler).recharge},
	}
}

// route serves the page and its parts to everybody, since they say nothing, and the rest to those who may
// look. The last parts of a path say what is asked for.
func (h *handler) route(w http.ResponseWriter, r *http.Request) {
	directory, name := path.Split(r.URL.Path)
	above, release := path.Split(strings.TrimSuffix(directory, "/"))
	switch {
	case name == "" && !strings.HasSuffix(directory, "//"):
		h.serveAsset(w, r, "", "index.html")
	case release == "assets":
		h.serveAsset(w, r, "", name)
	case path.Base(above) == "assets":
		h.serveAsset(w, r, release, name)
	case path.Base(directory) == "api":
		h.api(w, r, name)
	default:
		fail(w, http.StatusNotFound, "there is nothing here: the page is at a path that ends in a slash")
	}
}

func (h *handler) api(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Set("Cache-Control", "no-store")
	if name == "session" {
		h.session(w, r)
		return
	}
	who, role := h.identify(r)
	if role < Viewer {
		fail(w, http.StatusUnauthorized, "it is not known who you are: sign in")
		return
	}
	if name == "live" && r.Method == http.MethodGet {
		h.live(w, r, who)
		return
	}
	a, known := actions()[name]
	switch {
	case !known || (r.Method != a.method && (r.Method != http.MethodHead || a.method != http.MethodGet)):
		fail(w, http.StatusNotFound, "this is nothing that the console can be asked")
		return
	case role < a.least:
		fail(w, http.StatusForbidden, "you are "+role.String()+", and this needs "+a.least.String())
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	content, err := a.fn(h, request{r, who, role, r.URL.Query()})
	if err != nil {
		fail(w, statusOf(err), err.Error())
		return
	}
	answer(w, http.StatusOK, content)
}

// me tells the page who looks, and what there is to see.
func (h *handler) me(r request) (any, error) {
	return struct {
		App   string   `json:"app"`
		Who   Identity `json:"who"`
		Role  string   `json:"role"`
		Store bool     `json:"store"` // documents can be read
		Edit  bool     `json:"edit"`
	}{
		h.App, r.who, r.role.String(), h.Store != nil,
		h.Store != nil && r.role >= Editor,
	}, nil
}

// decode reads the JSON of a request.
func decode[T any](r request) (body T, err error) {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return body, errRequest{"the body must be application/json"}
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, errRequest{"the request cannot be read: " + err.Error()}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return body, errRequest{"the request has more than one value"}
	}
	return body, nil
}

// errRequest is a mistake in a request.
type errRequest struct{ text string }

func (e errRequest) Error() string { return e.text }

// statusOf returns the status of an answer to a request that failed.
func statusOf(err error) int {
	var mistake errRequest
	var conflict errConflict
	switch {
	case errors.As(err, &mistake):
		return http.StatusBadRequest
	case errors.As(err, &conflict):
		return http.StatusConflict
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	default:
		return http.StatusBadGateway
	}
}

func fail(w http.ResponseWriter, code int, text string) {
	answer(w, code, struct {
		Error string `json:"error"`
	}{text})
}

func answer(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content) // the client may be gone
}
