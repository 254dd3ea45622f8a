package server

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/penstock-go/penstock/serve"
)

// nginxPath is the path at which refusals have the status 403, as nginx passes on no other.
const nginxPath = "/nginx"

// forwardHandler answers proxies over HTTP, at every path.
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
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := handler
		if r.URL.Path == nginxPath {
			to = forNginx
		}
		counted := &statusWriter{ResponseWriter: w}
		if s.underWay.enter() {
			defer s.underWay.leave()
			to.ServeHTTP(counted, r)
		} else {
			shed(counted, to == forNginx)
		}
		s.requests.countHTTP(counted)
	}), nil
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
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// countHTTP counts a request over HTTP by the status that was meant, and logs one that was not
// decided, at most one a second.
func (r *requests) countHTTP(w *statusWriter) {
	status := w.status
	if meant, err := strconv.Atoi(w.Header().Get(serve.StatusField)); err == nil {
		status = meant
	}
	r.total.WithLabelValues("ForwardAuth", strconv.Itoa(status)).Inc()
	if (status == http.StatusBadRequest || status >= http.StatusInternalServerError) && r.mayLog() {
		r.logger.Error("penstock: a request over HTTP was not decided, and refused", slog.Int("status", status))
	}
}
