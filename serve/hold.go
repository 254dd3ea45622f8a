package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/netip"
	"unicode/utf8"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// The paths of a [Hold].
const (
	HoldPath    = "/hold"
	ReleasePath = "/release"
)

// maxHoldBody is how many bytes a request of a [Hold] may have.
const maxHoldBody = 64 << 10

// HoldOptions configure a [Hold]. The zero value is ready to use.
type HoldOptions struct {
	// Clients are the addresses of the programs that may ask. Defaults to those of loopback.
	Clients []netip.Prefix

	// MaxHolds bounds the calls under way. A call beyond is answered 503 and takes nothing.
	// Defaults to [DefaultMaxHolds].
	MaxHolds int

	// MaxAttributes bounds the attributes of a call. More are answered 400. Defaults to
	// [DefaultMaxEntries].
	MaxAttributes int

	// IPv6Prefix, Fields and Spread are those of [HTTPOptions].
	IPv6Prefix int
	Fields     nethttp.Fields
	Spread     nethttp.Spread
}

// Hold is the HTTP handler by which programs ask about their own calls, and say when these have
// ended: what a [RLS] is for programs that do not speak gRPC. Make it with [NewHold]. It is safe for
// concurrent use.
//
// POST /hold asks for a call, as JSON:
//
//	{"resource": "render", "attributes": {"user": "7", "ip": "192.0.2.1"}, "origin": "web", "tokens": 1}
//
// All but the resource may be left out. A call that may begin is answered 200. If rules count it as under
// way, the answer has an id and after how many seconds it is taken for ended:
//
//	{"id": "…", "maxAge": 60}
//
// and POST /release with {"id": "…"} ends it, and is answered 204, also if it had ended already: it may be
// repeated. An id that this server did not give is answered 404. A refusal is answered as by [ForwardAuth]; calls wait as long
// as their rules let them. What makes no sense is answered 400, and takes nothing.
type Hold struct {
	engine    *core.Engine
	options   HoldOptions
	mux       *http.ServeMux
	holds     holds
	instance  [holdInstanceSize]byte // with which the ids begin that it gives
	answers   *nethttp.Answers
	clients   *clientip.Resolver
	attribute func(*heldCall, string) rule.Attribute // a method
}

// holdInstanceSize is how many bytes of an id name the server. The others name the call.
const holdInstanceSize = len(holdKey{}) / 2

// NewHold returns the handler that decides by the rules of the engine.
func NewHold(engine *core.Engine, options HoldOptions) *Hold {
	if options.Clients == nil {
		options.Clients = loopback()
	}
	if options.MaxHolds <= 0 {
		options.MaxHolds = DefaultMaxHolds
	}
	if options.MaxAttributes <= 0 {
		options.MaxAttributes = DefaultMaxEntries
	}
	h := &Hold{
		engine: engine, options: options, mux: http.NewServeMux(),
		answers: nethttp.NewAnswers(engine, options.Fields, options.Spread),
		clients: clientip.New(clientip.Options{TrustedProxies: options.Clients, IPv6Prefix: options.IPv6Prefix}),
	}
	h.attribute, h.holds.most = h.attributeOf, options.MaxHolds
	_, _ = rand.Read(h.instance[:]) // never fails
	h.mux.HandleFunc("POST "+HoldPath, h.hold)
	h.mux.HandleFunc("POST "+ReleasePath, h.release)
	return h
}

// ServeHTTP answers a program.
func (h *Hold) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.clients.Trusts(peerOf(r)) {
		http.Error(w, "penstock: whoever asks is none of the clients", http.StatusForbidden)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// heldCall is what a program asks about.
type heldCall struct {
	Resource   string            `json:"resource"`
	Attributes map[string]string `json:"attributes"`
	Origin     string            `json:"origin"`
	Tokens     *int              `json:"tokens"`
}

// heldAnswer is the answer to a call that may begin.
type heldAnswer struct {
	ID     string  `json:"id,omitempty"`
	MaxAge float64 `json:"maxAge,omitempty"` // seconds
}

// hold decides on a call.
func (h *Hold) hold(w http.ResponseWriter, r *http.Request) {
	var call heldCall
	if !readJSON(w, r, &call) {
		return
	}
	opts, err := h.optionsOf(&call)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	guard, err := h.engine.Entry(r.Context(), call.Resource, opts...)
	switch block, refused := err.(*core.BlockError); { //nolint:errorlint // Entry does not wrap it
	case refused:
		h.answers.WriteRefused(w, block, call.Origin, opts...)
	case errors.Is(err, core.ErrInvalid):
		http.Error(w, "penstock: "+err.Error(), http.StatusBadRequest)
	case err != nil:
		nethttp.WriteProblem(w, err)
	default:
		h.admit(r.Context(), w, &guard, call.Resource, call.Origin, opts)
	}
}

// admit answers a call that may begin, and keeps it if rules count it as under way.
func (h *Hold) admit(ctx context.Context, w http.ResponseWriter, guard *core.Guard, resource, origin string, opts []core.Option) {
	var answer heldAnswer
	if within := guard.MaxAge(); within > 0 {
		if ctx.Err() != nil { // nobody is there to end it
			guard.Cancel()
			return
		}
		key := h.newKey()
		if h.holds.hold(key, guard, h.engine.Clock().Now(), within) == nil {
			guard.Cancel()
			http.Error(w, fmt.Sprintf("penstock: %d calls are under way, which is the most that may be", h.options.MaxHolds),
				http.StatusServiceUnavailable)
			return
		}
		answer = heldAnswer{ID: base64.RawURLEncoding.EncodeToString(key[:]), MaxAge: within.Seconds()}
	} else {
		guard.Exit()
	}
	h.answers.SetPassed(w.Header(), resource, origin, opts...)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // fails only when the program has gone
}

// release ends a call.
func (h *Hold) release(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID string `json:"id"`
	}
	if !readJSON(w, r, &asked) {
		return
	}
	var key holdKey
	if n, err := base64.RawURLEncoding.Strict().Decode(key[:], []byte(asked.ID[:min(len(asked.ID), maxHoldID)])); err != nil ||
		n != len(key) || len(asked.ID) != maxHoldID {
		http.Error(w, "penstock: the id is none that "+HoldPath+" has answered", http.StatusBadRequest)
		return
	}
	if [holdInstanceSize]byte(key[:holdInstanceSize]) != h.instance {
		http.Error(w, "penstock: the id is of another server, or from before this one was started", http.StatusNotFound)
		return
	}
	h.holds.end(key, h.engine.Clock().Now())
	w.WriteHeader(http.StatusNoContent)
}

// maxHoldID is how many bytes an id has.
const maxHoldID = (len(holdKey{})*8 + 5) / 6

// newKey returns the key of a call, which nobody can guess.
func (h *Hold) newKey() (key holdKey) {
	copy(key[:], h.instance[:])
	_, _ = rand.Read(key[holdInstanceSize:]) // never fails
	return key
}

// optionsOf returns the options of a call, or what makes no sense about it.
func (h *Hold) optionsOf(call *heldCall) ([]core.Option, error) {
	switch {
	case call.Resource == "":
		return nil, errors.New("penstock: the call has no resource")
	case len(call.Attributes) > h.options.MaxAttributes:
		return nil, fmt.Errorf("penstock: the call has %d attributes: at most %d are served", len(call.Attributes), h.options.MaxAttributes)
	case call.Tokens != nil && (*call.Tokens < 1 || *call.Tokens > math.MaxInt32):
		return nil, fmt.Errorf("penstock: tokens are %d: must be 1 to %d", *call.Tokens, math.MaxInt32)
	}
	opts := append(make([]core.Option, 0, 4), core.Attributes(h.attribute, call), core.Inbound())
	if call.Tokens != nil {
		opts = append(opts, core.Tokens(*call.Tokens))
	}
	if call.Origin != "" {
		opts = append(opts, core.Origin(call.Origin))
	}
	return opts, nil
}

// attributeOf returns the attribute of a key.
func (h *Hold) attributeOf(call *heldCall, key string) rule.Attribute {
	value, known := call.Attributes[key]
	address, hasAddress := call.Attributes[rule.KeyIP]
	switch {
	case known && key == rule.KeyIP:
		return attribute.Text(h.clients.Text(clientip.Parse(value)))
	case known:
		return attribute.Text(value)
	case hasAddress && key == rule.KeyIPPrefix:
		return attribute.Text(h.clients.PrefixText(clientip.Parse(address)))
	}
	return rule.Attribute{}
}

// readJSON reads what a program asks. If that makes no sense, it answers that, and returns false. A
// web page cannot send the media type to another site without being allowed to.
func readJSON(w http.ResponseWriter, r *http.Request, to any) bool {
	if of, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || of != "application/json" {
		http.Error(w, "penstock: the Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHoldBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, fmt.Sprintf("penstock: the body may have %d bytes", maxHoldBody), http.StatusRequestEntityTooLarge)
		return false
	}
	if err == nil {
		err = decodeJSON(body, to)
	}
	if err != nil {
		http.Error(w, "penstock: the body is not what can be asked: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

// decodeJSON decodes one object. A field that it does not know is a mistake: a rule would not see what is meant.
func decodeJSON(body []byte, to any) error {
	if !utf8.Valid(body) {
		return errors.New("it is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}
