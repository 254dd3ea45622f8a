package penstockecho

import (
	"cmp"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/rule"
)

// RouteResource names requests by their method and their route, [echo.Context.Path]:
// "GET:/orders/:id". See [nethttp.Names] for methods. Requests that no route matches are
// [nethttp.Unmatched], and so are methods that a route does not have, and routes of
// [echo.RouteNotFound]. A HEAD request that echo serves by a GET route has the name of
// that. It is safe for concurrent use.
func RouteResource() func(*echo.Context) string { return new(routes).resource }

// maxRoutes is how many routes and methods are cached.
const maxRoutes = 10_000

// routes tells by which routes requests are served. It caches those of the first Echo, so
// that nothing is allocated for them.
type routes struct {
	names nethttp.Names

	mu    sync.Mutex // for replacing known
	known atomic.Pointer[knownRoutes]
}

// knownRoutes are methods and paths of routes, and the methods in their names. They are
// not changed.
type knownRoutes struct {
	echo    *echo.Echo
	methods map[endpoint]string
}

type endpoint struct{ method, path string }

func (r *routes) resource(c *echo.Context) string {
	path := c.Path()
	if path == "" {
		return nethttp.Unmatched
	}
	method := c.Request().Method
	known := r.known.Load()
	if known != nil && known.echo == c.Echo() {
		if named, ok := known.methods[endpoint{method, path}]; ok {
			return r.names.Name(named, path)
		}
		if _, ok := known.methods[endpoint{echo.RouteAny, path}]; ok {
			return r.names.Name(method, path)
		}
	}
	return r.byInfo(c, path, method)
}

// byInfo names a request by what echo tells of its route, which allocates. Only routes that
// exist are added to those that are known: others may be added to echo later.
func (r *routes) byInfo(c *echo.Context, path, method string) string {
	info := c.RouteInfo()
	switch {
	case info.Name == echo.NotFoundRouteName, info.Name == echo.MethodNotAllowedRouteName,
		info.Method == echo.RouteNotFound, info.Method == "" && info.Path == "":
		return nethttp.Unmatched
	}
	named := info.Method
	if named == echo.RouteAny {
		named = method
	}
	r.learn(c.Echo(), info.Method, path, method, named)
	return r.names.Name(named, path)
}

// learn adds a route to those that are known. It adds all routes of the router at first.
func (r *routes) learn(of *echo.Echo, route, path, method, named string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known.Load()
	next := &knownRoutes{of, make(map[endpoint]string)}
	switch {
	case known == nil:
		for _, info := range of.Router().Routes() {
			if info.Method != echo.RouteNotFound {
				next.methods[endpoint{info.Method, info.Path}] = info.Method
			}
		}
	case known.echo != of || len(known.methods) >= maxRoutes:
		return
	default:
		maps.Copy(next.methods, known.methods)
	}
	if route == echo.RouteAny {
		next.methods[endpoint{route, path}] = route
	} else {
		next.methods[endpoint{method, path}] = cmp.Or(named, method)
	}
	r.known.Store(next)
}

// warnOfRouting logs once that a middleware runs before echo has routed.
func (m *middleware) warnOfRouting(c *echo.Context) {
	if c.Path() != "" || c.RouteInfo().Name != "" || m.warned.Swap(true) {
		return
	}
	m.options.Logger.LogAttrs(c.Request().Context(), slog.LevelWarn,
		"penstock: the echo middleware runs before echo has routed, rules on routes limit nothing: put it in Use, not in Pre",
		slog.String("path", rule.Quote(c.Request().URL.Path)))
}
