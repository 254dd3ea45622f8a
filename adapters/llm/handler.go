package llm

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Handler returns a handler for gateways: next sends requests on to a provider, such as a
// [net/http/httputil.ReverseProxy]. A refused call is answered with 429, Retry-After and an error in
// the style of the API.
func (m *Meter) Handler(next http.Handler) http.Handler {
	return &handler{m, next}
}

type handler struct {
	*Meter
	next http.Handler
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	style := styleOf(r)
	if style == "" {
		h.next.ServeHTTP(w, r)
		return
	}
	p, body, rest, err := readPrompt(r, h.options.MaxRequest, h.options.Count != nil)
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		writeError(w, style, status, "the request could not be read", 0)
		return
	}
	c, err := h.begin(r.Context(), r, style, p)
	if err != nil {
		refuse(w, style, err)
		return
	}
	sent, hides := h.outgoing(r, c, body, rest)
	answer := &answerWriter{ResponseWriter: w, call: c, hides: hides}
	h.serve(answer, sent)
}

// serve runs the handler of a call that passed.
func (h *handler) serve(w *answerWriter, r *http.Request) {
	returned := false
	defer func() {
		w.end(returned)
		if returned || !w.stopped() {
			return
		}
		// A reverse proxy aborts a response of which it could not write all. But the end of a
		// stream that was stopped is written, and the client is to see it.
		if value := recover(); value != nil && value != http.ErrAbortHandler { //nolint:errorlint // as package http compares it
			panic(value)
		}
	}()
	h.next.ServeHTTP(w, r)
	returned = true
}

// answerWriter is the ResponseWriter of a guarded call.
type answerWriter struct {
	http.ResponseWriter
	call   *call
	hides  bool
	status int
	stream *stream // nil if it is none
	kept   keptAnswer
}

// errStopped is what writing to a stream returns after its end.
var errStopped = errors.New("llm: the stream was stopped, a limit is used up")

// Unwrap serves [http.ResponseController].
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements [http.Flusher].
func (w *answerWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// WriteHeader looks at what the response will be.
func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) begin() {
	w.call.report.Status = w.status
	header := w.Header()
	switch {
	case !isServed(w.status):
	case header.Get("Content-Encoding") != "":
		w.call.unread("the answer is compressed")
	case isStream(header):
		w.stream = &stream{call: w.call, hides: w.hides}
		if w.hides || w.call.meter.options.StopStreams {
			header.Del("Content-Length")
		}
	default:
		w.kept.on = true
	}
}

// Write passes on what may be.
func (w *answerWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.stream == nil {
		w.kept.add(w.call, p)
		return w.ResponseWriter.Write(p)
	}
	if w.stream.stopped {
		return 0, errStopped
	}
	if out := w.stream.feed(p); len(out) > 0 {
		if _, err := w.ResponseWriter.Write(out); err != nil {
			return 0, err
		}
	}
	if w.stream.stopped {
		w.Flush()
		return 0, errStopped
	}
	return len(p), nil
}

func (w *answerWriter) stopped() bool { return w.stream != nil && w.stream.stopped }

// end ends the call, when the handler has returned or panicked.
func (w *answerWriter) end(returned bool) {
	if w.status == 0 && returned {
		w.status = http.StatusOK
		w.call.report.Status = w.status
	}
	if !isServed(w.status) {
		w.call.refuse(w.status >= http.StatusInternalServerError || w.status == 0)
		return
	}
	// Also if the ResponseWriter panics, or the program that counts tokens.
	defer w.call.end(!returned && !w.stopped() && w.call.request.Context().Err() == nil)
	switch {
	case w.stream != nil:
		if out := w.stream.rest(); len(out) > 0 {
			_, _ = w.ResponseWriter.Write(out) // the client may have left
		}
	case w.kept.on && returned:
		w.kept.take(w.call)
	}
}

// refuse answers a call that did not pass.
func refuse(w http.ResponseWriter, style string, err error) {
	var block *core.BlockError
	switch {
	case !errors.As(err, &block):
		writeError(w, style, http.StatusServiceUnavailable, "the call could not be admitted", 0)
	case block.Reason == rule.Denied:
		writeError(w, style, http.StatusForbidden, "the call is not allowed", 0)
	default:
		writeError(w, style, http.StatusTooManyRequests, "a limit of tokens is used up", block.RetryAfter)
	}
}

// writeError answers with an error in the style of the API.
func writeError(w http.ResponseWriter, style string, status int, text string, retryAfter time.Duration) {
	kind := map[int]string{
		http.StatusTooManyRequests: "rate_limit_error", http.StatusForbidden: "permission_error",
		http.StatusRequestEntityTooLarge: "request_too_large", http.StatusBadRequest: "invalid_request_error",
	}[status]
	if kind == "" {
		kind = "api_error"
	}
	var body any = map[string]any{"error": map[string]any{"message": text, "type": kind, "param": nil, "code": codeOf(status)}}
	if style == messages {
		body = map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": text}}
	}
	header := w.Header()
	if retryAfter > 0 && retryAfter != rule.Never {
		header.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(retryAfter.Seconds())), 10))
	}
	header.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}

// codeOf returns the code that OpenAI has beside the type, nil if it has none.
func codeOf(status int) any {
	if status == http.StatusTooManyRequests {
		return "rate_limit_exceeded"
	}
	return nil
}
