package httpsource_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	httpsource "github.com/penstock-go/penstock/datasource/http"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

const (
	one = "flow: [{resource: a, limit: 1}]"
	two = "flow: [{resource: a, limit: 2}]"
)

// server is an HTTP server whose handler the test replaces.
type server struct {
	*httptest.Server
	requests atomic.Int64
	handler  atomic.Pointer[http.HandlerFunc]
}

func newServer(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.handle(handler)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.handler.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) handle(handler http.HandlerFunc) { s.handler.Store(&handler) }

// pass waits until n polls of one document have ended.
func (s *server) pass(t *testing.T, n int64) {
	t.Helper()
	before := s.requests.Load()
	require.Eventually(t, func() bool { return s.requests.Load() > before+n }, sourcetest.Patience, time.Millisecond)
}

// serve returns a handler that answers with a text.
func serve(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// status returns a handler that answers with a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// byPath returns a handler that has a handler for each path.
func byPath(handlers map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if handler, ok := handlers[r.URL.Path]; ok {
			handler(w, r)
			return
		}
		http.NotFound(w, r)
	}
}

func open(t *testing.T, url string, opts httpsource.Options) core.Source {
	t.Helper()
	source, err := httpsource.New(url, opts)
	require.NoError(t, err)
	return source
}

func openIndex(t *testing.T, url string, opts httpsource.Options) core.Source {
	t.Helper()
	source, err := httpsource.NewIndex(url, opts)
	require.NoError(t, err)
	return source
}

// says returns a condition that the text of an error contains another.
func says(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

// polls is a source on a clock that the test advances.
type polls struct {
	*sourcetest.Recorder
	t     *testing.T
	clock *clock.Virtual
}

func followPolls(t *testing.T, index bool, url string) *polls {
	t.Helper()
	p := &polls{t: t, clock: clock.NewVirtual(time.Now())}
	opts := httpsource.Options{Clock: p.clock, Interval: time.Second}
	if index {
		p.Recorder = sourcetest.Follow(t, openIndex(t, url, opts))
	} else {
		p.Recorder = sourcetest.Follow(t, open(t, url, opts))
	}
	p.awaitPause()
	return p
}

func (p *polls) awaitPause() {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.clock.Timers() == 1 }, sourcetest.Patience, 100*time.Microsecond)
}

// next makes the source poll n times.
func (p *polls) next(n int) {
	p.t.Helper()
	for range n {
		p.clock.Advance(10 * time.Second) // more than any pause
		p.awaitPause()
	}
}

// record is a handler that keeps the fields of requests.
type record struct {
	mu       sync.Mutex
	requests []http.Header
}

func (r *record) wrap(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, request.Header.Clone())
		r.mu.Unlock()
		handler(w, request)
	}
}

// last returns the fields of the last request.
func (r *record) last() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[len(r.requests)-1]
}
