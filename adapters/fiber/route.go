package penstockfiber

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofiber/fiber/v3"
	"github.com/valyala/fasthttp"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// RouteResource names requests by their method and their route: "GET:/orders/:id". See
// [nethttp.Names] for methods. Requests that no route matches are [nethttp.Unmatched], and so
// are methods that a route does not have. A HEAD request that fiber serves by the handlers of
// a GET route has the name of that. Handlers in Use are no routes.
//
// It looks routes up in a second router, which it makes of the routes of the App at the first
// request, and again when their number has changed. It does not have the custom constraints of
// the App: where a route has one, put the middleware at the route, where it asks fiber itself.
//
// It is safe for concurrent use.
func RouteResource() func(fiber.Ctx) string { return new(finder).resource }

// maxApps is how many Apps are known at most.
const maxApps = 100

// finder finds the routes of requests. The zero value is ready to use.
type finder struct {
	names nethttp.Names
	last  atomic.Pointer[router] // of the last request

	mu   sync.Mutex
	apps map[*fiber.App]*router // guarded by mu
}

// resource returns the name of the resource of a request.
func (f *finder) resource(c fiber.Ctx) string {
	found, ok := f.route(c)
	if !ok {
		return nethttp.Unmatched
	}
	return f.names.Name(found.method, found.path)
}

// endpoint is a route, with the method in its name.
type endpoint struct{ method, path string }

// route returns the route that will serve a request.
func (f *finder) route(c fiber.Ctx) (found endpoint, ok bool) {
	r := f.of(c.App())
	if c.Matched() { // and this is a handler of the route
		if route := c.Route(); r.routes[endpoint{c.Method(), route.Path}] {
			return r.named(c.Method(), route.Path), true
		}
	}
	l := r.lookUp(c)
	defer r.lookUps.Put(l)
	if !l.matched {
		return endpoint{}, false
	}
	return r.named(c.Method(), l.ctx.Route().Path), true
}

// param returns a copy of a parameter of the route that will serve a request.
func (f *finder) param(c fiber.Ctx, name string) (value string, ok bool) {
	r := f.of(c.App())
	if c.Matched() && r.routes[endpoint{c.Method(), c.Route().Path}] {
		value, ok = paramOf(c, name)
		return strings.Clone(value), ok
	}
	l := r.lookUp(c)
	defer r.lookUps.Put(l)
	if !l.matched {
		return "", false
	}
	value, ok = paramOf(l.ctx, name)
	return strings.Clone(value), ok // before the next look-up
}

// paramOf returns a parameter of the present route of a context.
func paramOf(c fiber.Ctx, name string) (value string, ok bool) {
	key := name
	if key == "*" || key == "+" {
		key += "1" // the first of them
	}
	for _, param := range c.Route().Params {
		if param == key || !c.App().Config().CaseSensitive && strings.EqualFold(param, key) {
			return c.Params(param), true
		}
	}
	return "", false
}

// of returns the router of an App.
func (f *finder) of(app *fiber.App) *router {
	if last := f.last.Load(); last != nil && last.isOf(app) {
		return last
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.apps[app]
	if known == nil || !known.isOf(app) {
		if len(f.apps) >= maxApps || f.apps == nil {
			f.apps = make(map[*fiber.App]*router)
		}
		known = newRouter(app)
		f.apps[app] = known
	}
	f.last.Store(known)
	return known
}

// router has the routes of an App, but for those in Use, without their handlers.
type router struct {
	app      *fiber.App // whose routes it has
	handlers uint32     // of the App, when the router was made
	twin     *fiber.App // with the same routes
	routes   map[endpoint]bool
	heads    map[string]bool // the paths of GET routes that serve HEAD requests
	alls     map[string]bool // the paths of routes that serve all methods
	lookUps  sync.Pool       // of *lookUp
}

func newRouter(app *fiber.App) *router {
	config := app.Config()
	r := &router{
		app: app, handlers: app.HandlersCount(),
		twin: fiber.New(fiber.Config{
			CaseSensitive: config.CaseSensitive, StrictRouting: config.StrictRouting,
			RequestMethods: config.RequestMethods, DisableHeadAutoRegister: true,
		}),
		routes: make(map[endpoint]bool), heads: make(map[string]bool), alls: make(map[string]bool),
	}
	methods := make(map[*fiber.Handler]int) // that the routes with these handlers serve
	gets := make(map[string]*fiber.Handler) // the first handlers
	all := app.GetRoutes(true)
	for i := range all {
		route := &all[i]
		if route.Method == fiber.MethodGet && len(route.Handlers) > 0 {
			gets[route.Path] = &route.Handlers[0]
		}
	}
	for i := range all {
		route := &all[i]
		r.twin.Add([]string{route.Method}, route.Path, func(fiber.Ctx) error { return nil })
		r.routes[endpoint{route.Method, route.Path}] = true
		if len(route.Handlers) > 0 {
			if methods[&route.Handlers[0]]++; methods[&route.Handlers[0]] == len(config.RequestMethods) {
				r.alls[route.Path] = true
			}
		}
		if route.Method == fiber.MethodHead && len(route.Handlers) > 0 && gets[route.Path] == &route.Handlers[0] {
			r.heads[route.Path] = true
		}
	}
	r.twin.Handler() // builds the tree
	return r
}

// isOf reports whether the router has the present routes of the App.
func (r *router) isOf(app *fiber.App) bool { return r.app == app && r.handlers == app.HandlersCount() }

// named returns a route with the method in its name.
func (r *router) named(method, path string) endpoint {
	if method == fiber.MethodHead && r.heads[path] {
		method = fiber.MethodGet
	}
	return endpoint{method, path}
}

// lookUp is a request to the twin of an App.
type lookUp struct {
	ctx     *fiber.DefaultCtx // the interface would allocate
	matched bool
}

// lookUp routes a request. The result belongs to the caller, who puts it back.
func (r *router) lookUp(c fiber.Ctx) *lookUp {
	l, ok := r.lookUps.Get().(*lookUp)
	if !ok {
		l = &lookUp{ctx: fiber.NewDefaultCtx(r.twin)}
		l.ctx.Reset(new(fasthttp.RequestCtx))
	}
	l.ctx.Method(c.Method())
	l.ctx.Path(c.Path())
	l.matched = l.ctx.RestartRouting() == nil
	return l
}
