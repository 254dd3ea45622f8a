package adaptertest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// toyHTTP is a small framework whose handlers return errors, with an adapter that makes one
// mistake, or none.
type toyHTTP struct{ mistake string }

func (f toyHTTP) makes(mistake string) bool { return f.mistake == mistake }

func (f toyHTTP) harness() adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Handler:     f.server,
		StatusError: func(status int) error { return nethttp.StatusError(status) },
		PassAllocs:  20, RefuseAllocs: 10,
	}
}

// toyHandler is a handler of the framework.
type toyHandler func(w *toyWriter, r *http.Request) error

// toyWriter records what a response says.
type toyWriter struct {
	http.ResponseWriter
	framework toyHTTP
	status    int
	left      bool  // the client, before the status was set
	err       error // a refusal that was passed on
	hijacked  bool
	r         *http.Request
	guards    map[guardKey]bool // that the request has passed
}

type guardKey struct {
	engine   *core.Engine
	resource string
}

func (w *toyWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.left = status, core.Canceled(w.r.Context())
	}
	if w.framework.makes("buffers responses") && status == http.StatusOK {
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// FlushError serves http.ResponseController.
func (w *toyWriter) FlushError() error {
	if w.framework.makes("buffers responses") {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// PassRefusal serves nethttp.MarkRefused.
func (w *toyWriter) PassRefusal() { w.err = core.ErrBlocked }

// server returns the handler of a server of the framework.
func (f toyHTTP) server(s adaptertest.Server) http.Handler {
	mux := http.NewServeMux()
	for _, route := range s.Routes {
		mux.Handle(route.Method+" "+route.Pattern, toyRoute(route.Handle))
	}
	handler := toyHandler(func(w *toyWriter, r *http.Request) error {
		handler, pattern := mux.Handler(r)
		if route, ok := handler.(toyRoute); ok {
			setPathValues(r, pattern)
			return route(exchangeOf(w, r))
		}
		handler.ServeHTTP(w, r)
		return nil
	})
	for _, g := range slices.Backward(s.Guards) {
		handler = f.guard(g, mux, handler)
	}
	return http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
		w := &toyWriter{ResponseWriter: writer, framework: f, r: r}
		if s.Recovered != nil {
			defer func() {
				if value := recover(); value != nil {
					s.Recovered(value)
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
		}
		err := handler(w, r)
		var status nethttp.StatusError
		switch {
		case err == nil || w.status != 0:
		case errors.As(err, &status):
			w.WriteHeader(int(status))
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
}

// toyRoute is a handler of the suite. A mux has it only to find it.
type toyRoute func(adaptertest.Exchange) error

func (toyRoute) ServeHTTP(http.ResponseWriter, *http.Request) {}

func setPathValues(r *http.Request, pattern string) {
	r.Pattern = pattern
	_, route, _ := strings.Cut(pattern, "/")
	path := strings.TrimPrefix(r.URL.Path, "/")
	for segment := range strings.SplitSeq(route, "/") {
		var value string
		rest := path
		value, path, _ = strings.Cut(path, "/")
		name := strings.Trim(segment, "{}")
		if whole, ok := strings.CutSuffix(name, "..."); ok {
			name, value = whole, rest
		}
		if name != segment {
			r.SetPathValue(name, value)
		}
	}
}

// toyGuard is a guard of the toy adapter.
type toyGuard struct {
	toyHTTP
	engine     *core.Engine
	options    adaptertest.Options
	answers    *nethttp.Answers
	attributes *nethttp.Attributes
	resource   func(*http.Request) string
	next       toyHandler
}

func (f toyHTTP) guard(g adaptertest.Guard, mux *http.ServeMux, next toyHandler) toyHandler {
	o := g.Options
	switch {
	case g.Engine == nil && f.makes("makes an engine of its own"):
		g.Engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	case g.Engine == nil:
		g.Engine = penstock.Default()
	}
	if f.makes("believes proxies it does not know") {
		o.Clients.TrustedProxies = prefixes("0.0.0.0/0")
	}
	if f.makes("believes all priorities") && o.PriorityHeader != "" {
		o.Clients.PriorityCallers = everyone()
	}
	if f.makes("ignores PriorityTrust") {
		o.PriorityTrust = nil
	}
	if o.Failure == nil || f.makes("ignores Failure") {
		o.Failure = nethttp.IsFailure
	}
	fields := o.Fields
	if f.makes("names rules that are hidden") {
		fields = nethttp.Fields{}
	}
	if f.makes("ignores Spread") {
		o.Spread = nethttp.Spread{Share: -1}
	}
	guard := &toyGuard{
		toyHTTP: f, engine: g.Engine, options: o, next: next,
		answers:    nethttp.NewAnswers(g.Engine, fields, o.Spread),
		attributes: nethttp.NewAttributes(o.Clients),
	}
	guard.resource = guard.namesOf(mux)
	return guard.handle
}

// namesOf returns how requests are named.
func (g *toyGuard) namesOf(mux *http.ServeMux) func(*http.Request) string {
	byRoute := nethttp.MuxResource(mux)
	return func(r *http.Request) string {
		name := byRoute(r)
		_, pattern := mux.Handler(r)
		setPathValues(r, pattern)
		switch {
		case g.options.Resource != nil && !g.makes("ignores Resource"):
			name = g.options.Resource(requestOf(r))
		case g.makes("names by path"):
			name = r.Method + ":" + r.URL.Path
		case g.makes("does not guard what no route matches") && name == nethttp.Unmatched:
			name = ""
		case g.makes("counts HEAD on its own") && r.Method == http.MethodHead:
			name = "HEAD" + strings.TrimPrefix(name, "GET")
		}
		if name == "" && g.makes("guards what has no resource") {
			name = "guarded"
		}
		return name
	}
}

func (g *toyGuard) handle(w *toyWriter, r *http.Request) error {
	if g.makes("answers OPTIONS") && r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	resource := g.resource(r)
	if resource == "" || w.guards[guardKey{g.engine, resource}] && !g.makes("counts nested guards") {
		return g.next(w, r)
	}
	if !g.makes("ignores BufferBody") {
		nethttp.BufferBody(r, g.options.BufferBody)
	}
	origin := ""
	if g.options.Origin != nil && !g.makes("ignores Origin") {
		origin = g.options.Origin(requestOf(r))
	}
	p, known := g.priority(r)
	ctx := r.Context()
	if g.makes("waits without a context") {
		ctx = context.WithoutCancel(ctx)
	}
	guard, err := g.engine.Entry(ctx, resource, g.optionsOf(r, origin, p)...)
	if g.makes("counts twice") {
		if again, err := g.engine.Entry(ctx, resource); err == nil {
			again.Exit()
		}
	}
	if err != nil {
		return g.refuse(w, r, err, origin)
	}
	if !g.makes("does not yield") {
		runtime.Gosched()
	}
	if !g.makes("sets no fields on what passes") {
		g.answers.SetPassed(w.Header(), resource, origin)
	}
	if known && !g.makes("does not pass priorities on") {
		r = r.WithContext(core.ContextWithPriority(r.Context(), p))
	}
	if w.guards == nil {
		w.guards = map[guardKey]bool{}
	}
	w.guards[guardKey{g.engine, resource}] = true
	return g.serve(w, r, &guard)
}

// priority returns how important a request is.
func (g *toyGuard) priority(r *http.Request) (p rule.Priority, known bool) {
	trust := g.options.PriorityTrust
	if trust != nil && g.makes("asks PriorityTrust always") {
		trust(requestOf(r))
	}
	if p, ok := nethttp.ChosenPriority(g.attributes, r, http.CanonicalHeaderKey(g.options.PriorityHeader), requestOf(r), trust); ok {
		return p, true
	}
	if g.options.Priority != nil {
		return g.options.Priority(requestOf(r)), true
	}
	return rule.PriorityNormal, false
}

// optionsOf returns the options of the call.
func (g *toyGuard) optionsOf(r *http.Request, origin string, p rule.Priority) (opts []core.Option) {
	if !g.makes("is not inbound") {
		opts = append(opts, core.Inbound())
	}
	switch {
	case g.makes("offers no attributes"):
	case g.makes("does not bound attributes"):
		opts = append(opts, core.Attributes(unbounded, r))
	case g.makes("reads attributes at once"):
		tenant := g.attributes.Attribute(r, "header:X-Tenant")
		text, _ := tenant.Text()
		opts = append(opts, core.String("header:X-Tenant", text), core.Attributes(g.attributes.Attribute, r))
	default:
		opts = append(opts, core.Attributes(g.attributes.Attribute, r))
	}
	opts = append(opts, core.Priority(p), core.Origin(origin))
	if g.options.Tokens != nil && !g.makes("ignores Tokens") {
		tokens := g.options.Tokens(requestOf(r))
		if g.makes("raises tokens") {
			tokens = max(tokens, 1)
		}
		opts = append(opts, core.Tokens(tokens))
	}
	if g.options.Attributes != nil && !g.makes("ignores Attributes") {
		opts = append(opts, g.options.Attributes(requestOf(r))...)
	}
	if g.makes("does not wait") {
		opts = append(opts, core.NoWait())
	}
	return opts
}

func unbounded(r *http.Request, key string) rule.Attribute {
	for prefix, value := range map[string]func(string) string{
		"header:": r.Header.Get, "query:": r.URL.Query().Get, "param:": r.PathValue,
	} {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			return rule.String(value(name))
		}
	}
	return rule.Attribute{}
}

// serve runs the handler of a call that passed.
func (g *toyGuard) serve(w *toyWriter, r *http.Request, guard *core.Guard) (err error) {
	if g.makes("exits before the handler") {
		guard.Exit()
		return g.next(w, r)
	}
	if g.makes("leaks goroutines") {
		go func() { select {} }()
	}
	if g.makes("allocates") {
		_ = fmt.Sprint(strings.Split(strings.Repeat("a b ", 100), " "))
	}
	inner := r
	if !g.makes("hands the context of the caller on") {
		with, call := new(nethttp.Requests).Enter(r, guard, 0, false)
		if guard = call.Guard(); !g.makes("keeps the guard for itself") {
			inner = with
		} else if ctx := guard.Context(r.Context()); ctx != r.Context() {
			inner = r.WithContext(ctx)
		}
		defer call.End()
	}
	returned := false
	if !g.makes("forgets Exit") {
		defer func() {
			if returned || !g.makes("forgets Exit after a panic") {
				guard.Exit()
			}
		}()
	}
	defer func() {
		value := any(nil)
		if !returned && g.makes("swallows panics") {
			value = recover()
		}
		switch {
		case returned:
			g.mark(guard, w, r, err)
		case core.Canceled(r.Context()) && !g.makes("fails what clients leave"):
			guard.MarkIgnored()
		case value == nil || !g.makes("does not report panics"):
			guard.MarkFailed()
		}
	}()
	if g.makes("cuts bodies") {
		inner.Body = http.MaxBytesReader(w, inner.Body, 1<<20)
	}
	err = g.next(w, inner)
	if inner != r {
		nethttp.HandBack(inner, r)
	}
	if !g.makes("forgets Exit after a panic") {
		returned = true
		return err
	}
	g.mark(guard, w, r, err)
	returned = true
	return err
}

// mark says how a call ended.
func (g *toyGuard) mark(guard *core.Guard, w *toyWriter, r *http.Request, err error) {
	if g.makes("never reports failures") {
		return
	}
	status := w.status
	var of nethttp.StatusError
	switch {
	case status == 0 && errors.As(err, &of):
		status = int(of)
		if !g.makes("takes every error for a failure") {
			err = nil
		}
	case status == 0:
		status = http.StatusOK
	}
	if g.makes("ignores errors of handlers") {
		err = nil
	}
	cause := err
	left := w.left || core.Canceled(r.Context()) && w.status < http.StatusInternalServerError
	switch {
	case (left || g.makes("ignores failures before clients leave") && core.Canceled(r.Context())) &&
		!g.makes("fails what clients leave"):
		cause = nethttp.ErrCanceled
	case left && w.hijacked:
		cause = nil
	case left:
		guard.MarkFailed()
	case w.err != nil:
		cause = w.err
	}
	if g.makes("fails what is refused further down") && core.IsRefusal(cause) {
		cause = errors.New("refused")
	}
	if g.makes("ignores all refusals further down") && (status == http.StatusServiceUnavailable || errors.Is(err, core.ErrBlocked)) {
		cause = core.ErrBlocked
	}
	nethttp.MarkOutcome(guard, g.options.Failure, status, cause)
}

// refuse answers a request that did not pass.
func (g *toyGuard) refuse(w *toyWriter, r *http.Request, err error, origin string) error {
	var block *core.BlockError
	refused := errors.As(err, &block)
	if refused && block.Reason != rule.Injected && !g.makes("fails what is refused further down") {
		w.PassRefusal() // of the calls further out
	}
	x := exchangeOf(w, r)
	switch {
	case g.makes("serves what is refused"):
		return g.next(w, r)
	case !refused && errors.Is(err, core.ErrClosed) && g.makes("serves when closed"):
		return g.next(w, r)
	case !refused && g.options.EntryError != nil && !g.makes("ignores EntryError"):
		return g.options.EntryError(x, err)
	case !refused && g.makes("answers ErrClosed with 500"):
		w.WriteHeader(http.StatusInternalServerError)
	case !refused:
		nethttp.WriteProblem(w, err)
	case g.options.Blocked != nil && !g.makes("ignores Blocked"):
		g.answers.SetRefused(w.Header(), block, origin)
		return g.options.Blocked(x, block)
	case g.makes("answers all refusals with 429"):
		w.WriteHeader(http.StatusTooManyRequests)
	case g.makes("sets no fields on refusals"):
		nethttp.WriteProblem(w, block)
	case g.makes("ignores answers of rules"):
		other := *block
		other.Answer = rule.Answer{}
		g.answers.WriteRefused(w, &other, origin)
	default:
		g.answers.WriteRefused(w, block, origin)
	}
	return nil
}

// requestOf is a request of the suite.
func requestOf(r *http.Request) adaptertest.Request { return adaptertest.HandlerExchange{R: r} }

// toyExchange is a request of the suite with its response.
type toyExchange struct {
	adaptertest.HandlerExchange
	w *toyWriter
}

func exchangeOf(w *toyWriter, r *http.Request) toyExchange {
	return toyExchange{adaptertest.HandlerExchange{W: w, R: r}, w}
}

func (x toyExchange) Respond(status int, body string) error {
	_ = x.HandlerExchange.Respond(status, body) // fails where there is no body, or no client any more
	return nil
}

func (x toyExchange) Hijack(fn func(net.Conn)) error {
	if x.w.framework.makes("hides the connection") {
		return errors.New("no connection")
	}
	x.w.hijacked = true
	conn, _, err := http.NewResponseController(x.w.ResponseWriter).Hijack()
	if err == nil {
		fn(conn)
	}
	return err
}
