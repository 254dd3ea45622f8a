package penstockchi

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Middleware returns a middleware that makes every request a guarded call of the
// engine, of the default engine if that is nil. It is [nethttp.Middleware], but for
// these defaults: [nethttp.Options.Resource] is [RouteResource], and
// [nethttp.Options.Param] returns the parameters of chi's route.
//
// It may stand in Use, With and Group of any router, below Route and Mount, and
// around a router. Middlewares that change the path or the method by which chi
// routes, such as StripSlashes and GetHead, must come before it. A middleware
// that notices that requests are served by another route than the one that they are
// named after logs a warning once.
func Middleware(engine *core.Engine, options nethttp.Options) func(http.Handler) http.Handler {
	m := &middleware{finder: new(finder), logger: options.Logger}
	if m.logger == nil {
		m.logger = slog.Default()
	}
	if options.Resource == nil {
		options.Resource, m.checks = m.finder.resource(), true
	}
	if options.Param == nil {
		options.Param = m.finder.param
	}
	if engine == nil {
		engine = penstock.Default()
	}
	m.methods = nethttp.NewRouteMethods(engine, m.logger)
	guard := nethttp.Middleware(engine, options)
	return func(next http.Handler) http.Handler {
		guarded := guard(next)
		if m.checks {
			guarded = guard(&checked{middleware: m, next: next})
		}
		switch next := next.(type) {
		case chi.Routes:
			return &around{router: next, guarded: guarded}
		case *around:
			return &around{router: next.router, guarded: guarded}
		}
		return guarded
	}
}

// RouteResource names requests by their method and the pattern of chi's route, as
// [chi.Context.RoutePattern] returns it when the request was served:
// "GET:/orders/{id}", "GET:/v1/files/*". It looks the route up in the tree of routers,
// and so knows it before the last of them has routed. Requests that no route matches
// are [nethttp.Unmatched], and so are methods that a route does not have. A HEAD request
// that the middleware GetHead has routed to a GET route has the name of that. Requests that no
// chi router serves are named as [nethttp.PatternResource] does.
//
// It is for functions of your own that decide on some requests, such as those for
// health checks, and leave the others to it. It is safe for concurrent use.
func RouteResource() func(*http.Request) string { return new(finder).resource() }

type middleware struct {
	finder *finder
	logger *slog.Logger
	checks bool // compare names with the routes that served the requests
	served atomic.Uint64
	warned atomic.Bool

	methods *nethttp.RouteMethods
}

// sampling is how many requests there are for each one that is checked.
const sampling = 16

// checked calls a handler, and warns if chi served a request by another route than
// the one that it is named after. It checks the first requests, and then one in
// sampling.
type checked struct {
	*middleware
	next http.Handler
}

func (c *checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := c.served.Add(1); (n > sampling && n%sampling != 0) || c.warned.Load() {
		c.next.ServeHTTP(w, r)
		return
	}
	rctx := chi.RouteContext(r.Context())
	named := c.finder.route(r)
	if named.pattern != "" {
		c.methods.CheckIf(named.pattern, func() bool { return c.finder.servesAll(rctx, r, named.pattern) })
	}
	c.next.ServeHTTP(w, r)
	if rctx == nil {
		if r.Pattern == "" {
			c.warn(r, "", "")
		}
		return
	}
	if served := c.finder.served(rctx); served.pattern != "" && served != named {
		c.warn(r, named.pattern, served.pattern)
	}
}

// warn logs once that the middleware does not know the routes of requests.
func (m *middleware) warn(r *http.Request, named, served string) {
	if m.warned.Swap(true) {
		return
	}
	m.logger.LogAttrs(r.Context(), slog.LevelWarn,
		"penstock: the chi middleware names requests by another route than the one that serves them, rules on that route "+
			"do not limit them: put it after middlewares that change the path or the method, and into a chi router",
		slog.String("path", rule.Quote(r.URL.Path)), slog.String("named", named), slog.String("served", served))
}

// around is a guarded router. It makes chi's context before the router does, so that
// the route can be looked up.
type around struct {
	router   chi.Routes
	guarded  http.Handler
	contexts sync.Pool // of *chi.Context
}

func (a *around) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if chi.RouteContext(r.Context()) != nil {
		a.guarded.ServeHTTP(w, r)
		return
	}
	rctx, ok := a.contexts.Get().(*chi.Context)
	if !ok {
		rctx = chi.NewRouteContext()
	}
	rctx.Reset()
	rctx.Routes = a.router
	a.guarded.ServeHTTP(w, r.WithContext(withRoute(r.Context(), rctx)))
	a.contexts.Put(rctx) // but not after a panic, as chi does
}
