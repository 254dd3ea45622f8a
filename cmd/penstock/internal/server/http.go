package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/serve"
)

// nginxPath is the path at which refusals have the status 403, as nginx passes on no other.
const nginxPath = "/nginx"

// bodyTimeout is how long a body may take, and bodyAhead how much of it is read before anything is decided.
const (
	bodyTimeout = 5 * time.Second
	bodyAhead   = 64<<10 + 1 // more than hold reads
)

// forwardHandler answers proxies over HTTP, at every path but those of programs that ask about their own calls.
func (s *server) forwardHandler() (http.Handler, error) {
	handler, err := serve.NewForwardAuth(s.Engine, s.ForwardAuth)
	if err != nil {
		return nil, err
	}
	options := s.ForwardAuth
	options.RefuseStatus = http.StatusForbidden
	forNginx, err := serve.NewForwardAuth(s.Engine, options)
	if err != nil {
		return nil, err
	}
	hold := http.NotFoundHandler()
	if s.Hold != nil {
		hold = serve.NewHold(s.Engine, *s.Hold)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		method := "ForwardAuth"
		switch path := r.URL.Path; {
		case s.Hold != nil && path == serve.ReleasePath: // however much is under way: less is, afterwards
			method = "Release"
			if readBody(counted, r) {
				hold.ServeHTTP(counted, r)
			}
		case s.Hold != nil && path == serve.HoldPath:
			method = "Hold"
			if readBody(counted, r) {
				s.answer(counted, r, hold, false)
			}
		case path == nginxPath:
			s.answer(counted, r, forNginx, true)
		default:
			s.answer(counted, r, handler, false)
		}
		s.requests.countHTTP(method, counted)
	}), nil
}

// readBody reads the beginning of a body, which is all of one that makes sense, before the request counts as
// under way: so a client that sends it slowly holds up nobody else. If that takes too long, it answers
// so, and returns false.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyAhead))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close")
		http.Error(w, "penstock: the body did not come in time", http.StatusRequestTimeout)
		return false
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = aheadBody{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	return true
}

// aheadBody is a body of which the beginning was read.
type aheadBody struct {
	io.Reader
	io.Closer
}

// answer has a handler answer, unless too many requests are under way.
func (s *server) answer(w http.ResponseWriter, r *http.Request, handler http.Handler, isNginx bool) {
	if !s.underWay.enter() {
		shed(w, isNginx)
		return
	}
	defer s.underWay.leave()
	handler.ServeHTTP(w, r)
}

// shed answers a request that is one too many.
func shed(w http.ResponseWriter, isNginx bool) {
	status := http.StatusServiceUnavailable
	if isNginx {
		w.Header().Set(serve.StatusField, strconv.Itoa(status))
		status = http.StatusForbidden
	}
	http.Error(w, "penstock: "+tooMany, status)
}

// statusWriter notes the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status  int
	refused bool // by a rule, whatever the status
}

// PassRefusal is what nethttp.MarkRefused calls.
func (w *statusWriter) PassRefusal() { w.refused = true }

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// countHTTP counts a request over HTTP by the status that was meant, and logs one that was not
// decided, at most one a second.
func (r *requests) countHTTP(method string, w *statusWriter) {
	status := w.status
	if meant, err := strconv.Atoi(w.Header().Get(serve.StatusField)); err == nil {
		status = meant
	}
	r.total.WithLabelValues(method, strconv.Itoa(status)).Inc()
	if !w.refused && (status == http.StatusBadRequest || status >= http.StatusInternalServerError) && r.mayLog() {
		r.logger.Error("penstock: a request over HTTP was not decided, and refused", slog.Int("status", status))
	}
}
