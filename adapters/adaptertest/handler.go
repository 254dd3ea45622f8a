package adaptertest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// HandlerExchange is the [Exchange] of a handler of net/http. The harness of a framework
// that has contexts of its own embeds it, and replaces what is done in another way there.
type HandlerExchange struct {
	W http.ResponseWriter // nil for options that get only a [Request]
	R *http.Request
}

// Context is that of the request.
func (x HandlerExchange) Context() context.Context { return x.R.Context() }

// Method is that of the request.
func (x HandlerExchange) Method() string { return x.R.Method }

// Header returns a header field of the request.
func (x HandlerExchange) Header(name string) string { return x.R.Header.Get(name) }

// Query returns a parameter of the query.
func (x HandlerExchange) Query(name string) string { return x.R.URL.Query().Get(name) }

// Param returns a wildcard of the route of a [http.ServeMux].
func (x HandlerExchange) Param(name string) string { return x.R.PathValue(name) }

// Body reads the body of the request to its end.
func (x HandlerExchange) Body() ([]byte, error) { return io.ReadAll(x.R.Body) }

// SetHeader sets a header field of the response.
func (x HandlerExchange) SetHeader(name, value string) { x.W.Header().Set(name, value) }

// Refuse answers with a problem body.
func (x HandlerExchange) Refuse(err error) error {
	nethttp.WriteProblem(x.W, err)
	return nil
}

// Respond writes the status and the body.
func (x HandlerExchange) Respond(status int, body string) error {
	x.W.WriteHeader(status)
	_, err := io.WriteString(x.W, body)
	return err
}

// Stream writes the status, and has fn write the body.
func (x HandlerExchange) Stream(status int, fn func(StreamWriter) error) error {
	x.W.WriteHeader(status)
	return fn(handlerStream{x.W})
}

// handlerStream is the [StreamWriter] of a response.
type handlerStream struct{ w http.ResponseWriter }

func (s handlerStream) WriteString(text string) (int, error) { return io.WriteString(s.w, text) }

func (s handlerStream) Flush() error { return http.NewResponseController(s.w).Flush() }

// Hijack has fn answer with the connection.
func (x HandlerExchange) Hijack(fn func(net.Conn)) error {
	hijacker, ok := x.W.(http.Hijacker)
	if !ok {
		return errors.New("the connection cannot be taken over")
	}
	conn, _, err := hijacker.Hijack()
	if err == nil {
		fn(conn)
	}
	return err
}

// HandlerOptions returns options of the suite as those of [nethttp.Middleware], for adapters
// that have the same. exchange makes what the options get; its ResponseWriter may be nil.
func HandlerOptions(o *Options, exchange func(http.ResponseWriter, *http.Request) Exchange) nethttp.Options {
	request := func(r *http.Request) Request { return exchange(nil, r) }
	options := nethttp.Options{
		Resource: Adapt(o.Resource, request), Origin: Adapt(o.Origin, request), Tokens: Adapt(o.Tokens, request),
		Attributes: Adapt(o.Attributes, request), Priority: Adapt(o.Priority, request),
		PriorityHeader: o.PriorityHeader,
		PriorityTrust:  AdaptTrust(o.PriorityTrust, request),
		Clients:        o.Clients,
		Failure:        o.Failure, Fields: o.Fields, Spread: o.Spread, BufferBody: o.BufferBody,
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(w http.ResponseWriter, r *http.Request, block *core.BlockError) {
			_ = blocked(exchange(w, r), block) // of Respond and others: the client has gone
		}
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(w http.ResponseWriter, r *http.Request, err error) { _ = entryError(exchange(w, r), err) }
	}
	return options
}

// ColonPattern returns a pattern of the suite as frameworks spell it that have "/orders/:id"
// for "/orders/{id}"; wildcard is what stands for the rest of the path, such as "*".
func ColonPattern(pattern, wildcard string) string {
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		switch name, ok := strings.CutPrefix(segment, "{"); {
		case strings.HasSuffix(name, "...}"):
			segments[i] = wildcard
		case ok:
			segments[i] = ":" + strings.TrimSuffix(name, "}")
		}
	}
	return strings.Join(segments, "/")
}

// Adapt returns an option of the suite as one of a framework, which gets an R; nil if the
// option is not set.
func Adapt[R, T any](option func(Request) T, request func(R) Request) func(R) T {
	if option == nil {
		return nil
	}
	return func(r R) T { return option(request(r)) }
}

// AdaptTrust is [Adapt] for [Options.PriorityTrust].
func AdaptTrust[R any](
	trust func(Request) (rule.Priority, bool), request func(R) Request,
) func(R) (most rule.Priority, trusted bool) {
	if trust == nil {
		return nil
	}
	return func(r R) (rule.Priority, bool) { return trust(request(r)) }
}

// HandlerRecovery returns a middleware that recovers panics, calls recovered with their
// values, and answers with 500.
func HandlerRecovery(recovered func(value any)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if value := recover(); value != nil {
					recovered(value)
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// NewDiscardWriter returns a ResponseWriter that keeps nothing but header fields, for
// benchmarks and for tests that count allocations.
func NewDiscardWriter() http.ResponseWriter { return discardWriter{http.Header{}} }

type discardWriter struct{ header http.Header }

func (w discardWriter) Header() http.Header { return w.header }

func (discardWriter) Write(data []byte) (int, error) { return len(data), nil }

func (discardWriter) WriteHeader(int) {}

// ServeHandler starts a server of a handler, which writes no log and stops with the test,
// and returns it.
func ServeHandler(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// directly returns what [HTTPHarness.Direct] returns, of a handler.
func directly(handler http.Handler) func(*http.Request) func() {
	return func(r *http.Request) func() {
		writer := NewDiscardWriter()
		return func() { handler.ServeHTTP(writer, r) }
	}
}
