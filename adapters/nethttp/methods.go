package nethttp

import (
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/core"
)

// RouteMethods warns of rules that name one method of a route that serves all methods: a limit on
// "POST:/login" leaves PUT and PATCH of the same handler open. It is for adapters; make it with
// [NewRouteMethods]. It is safe for concurrent use.
type RouteMethods struct {
	engine *core.Engine
	logger *slog.Logger

	checked atomic.Pointer[checkedRoutes]
	mu      sync.Mutex // guards changes of checked
}

// checkedRoutes are the routes that were looked at since the rules last changed. It never changes.
type checkedRoutes struct {
	revision uint64
	routes   map[string]struct{}
}

// maxCheckedRoutes is how many routes are looked at; nobody writes more of them for all methods.
const maxCheckedRoutes = 1000

// NewRouteMethods returns one for the rules of an engine.
func NewRouteMethods(engine *core.Engine, logger *slog.Logger) *RouteMethods {
	return &RouteMethods{engine: engine, logger: logger}
}

// check does what [RouteMethods.CheckIf] does, for a route that serves requests of all methods.
func (m *RouteMethods) check(route string) {
	if m.isDue(route) {
		m.look(route)
	}
}

// CheckIf looks whether rules name one method of a route and leave others open, and logs a warning
// if so. Route is that of the names of resources. servesAll tells whether the route serves requests of
// all methods, and is asked only if the route is to be looked at: once after the rules have changed.
// Else it takes some nanoseconds.
func (m *RouteMethods) CheckIf(route string, servesAll func() bool) {
	if m.isDue(route) && servesAll() {
		m.look(route)
	}
}

// isDue says whether a route is to be looked at, and takes note of it.
func (m *RouteMethods) isDue(route string) bool {
	revision := m.engine.Revision()
	if checked := m.checked.Load(); checked != nil && checked.revision == revision {
		if _, known := checked.routes[route]; known || len(checked.routes) >= maxCheckedRoutes {
			return false
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	next := &checkedRoutes{revision: revision, routes: make(map[string]struct{})}
	if present := m.checked.Load(); present != nil && present.revision == revision {
		if _, known := present.routes[route]; known {
			return false // another goroutine was quicker
		}
		maps.Copy(next.routes, present.routes)
	}
	next.routes[route] = struct{}{}
	m.checked.Store(next)
	return true
}

// look compares the rules for the methods of a route.
func (m *RouteMethods) look(route string) {
	if route == "" {
		return
	}
	methods := [...]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace, "OTHER",
	}
	covered := make(map[string][]string) // the methods that have a rule, by its kind
	named := make(map[string]string)     // the first rule that names a resource, by its kind
	for _, method := range methods {
		resource, has := endpoint{method, route}.name(), make(map[string]bool)
		for _, applied := range m.engine.Explain(resource) {
			kind := string(applied.Kind)
			if !has[kind] {
				covered[kind] = append(covered[kind], method)
			}
			has[kind] = true
			if applied.Rule.Target().Resource == resource && named[kind] == "" {
				named[kind] = applied.Name
			}
		}
	}
	for kind, name := range named {
		if with := covered[kind]; len(with) < len(methods) {
			m.logger.Warn("penstock: a rule names one method of a route that serves all methods, the others are not under it: "+
				"give the route a method, or the rule a pattern such as *:"+route+" with perResource: false",
				slog.String("kind", kind), slog.String("rule", name), slog.String("route", route), slog.Any("covered", with))
		}
	}
}
