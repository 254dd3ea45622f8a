package penstockchi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-chi/chi/v5"
)

// place is how far chi has routed a request: what the patterns that matched so far
// lead to. Places are cached, and depend on the program only.
type place struct {
	routes  chi.Routes // of the router that routes next; nil at the end of a route
	mounted bool       // that router gets the rest of the path, else the path that this one got
	exact   bool       // that router is mounted, and the path ends here

	patterns []string // that matched so far
	pattern  string   // all of them as one; "" before any

	mu    sync.Mutex                        // for replacing next
	nexts atomic.Pointer[map[string]*place] // by the next pattern; the map is not changed
}

// follow returns the place to which further patterns lead.
func (p *place) follow(patterns []string) *place {
	for _, pattern := range patterns {
		p = p.next(pattern)
	}
	return p
}

// next returns the place to which a pattern leads.
func (p *place) next(pattern string) *place {
	if known := p.nexts.Load(); known != nil {
		if next, ok := (*known)[pattern]; ok {
			return next
		}
	}
	return p.learn(pattern)
}

// learn adds the places to which all routes of the router lead, and that of the pattern.
// chi does not list the patterns without a wildcard that Mount adds to that with one.
func (p *place) learn(pattern string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	nexts := make(map[string]*place)
	if known := p.nexts.Load(); known != nil {
		maps.Copy(nexts, *known)
	}
	if p.routes != nil {
		for _, route := range p.routes.Routes() {
			if nexts[route.Pattern] == nil {
				nexts[route.Pattern] = p.below(route.Pattern, route)
			}
		}
	}
	next := nexts[pattern]
	if next == nil {
		next = p.below(pattern, chi.Route{})
		for _, suffix := range []string{"*", "/*"} {
			if mount := nexts[pattern+suffix]; mount != nil && mount.mounted {
				next.routes, next.mounted, next.exact = mount.routes, true, true
			}
		}
		nexts[pattern] = next
	}
	p.nexts.Store(&nexts)
	return next
}

// below returns the place to which a route of the router leads.
func (p *place) below(pattern string, route chi.Route) *place {
	next := &place{patterns: append(slices.Clip(p.patterns), pattern)}
	all := chi.Context{RoutePatterns: next.patterns}
	next.pattern = cmp.Or(all.RoutePattern(), "/")
	if route.SubRoutes != nil {
		next.routes, next.mounted = route.SubRoutes, true
		return next
	}
	for _, handler := range route.Handlers {
		if router, ok := handler.(chi.Routes); ok { // by Handle
			next.routes = router
		}
	}
	return next
}

// pathOf returns the path by which the router at a place routes a request. chi has
// followed the patterns that lead there, and the handlers of the last may have been called
// or not: a router that is mounted has its path from the wildcard, which is
// empty afterwards.
func (p *place) pathOf(rctx *chi.Context, r *http.Request) string {
	path := cmp.Or(rctx.RoutePath, r.URL.RawPath, r.URL.Path, "/")
	if !p.mounted {
		return path
	}
	if p.exact {
		return "/"
	}
	if rest, ok := lastParam(&rctx.URLParams, "*"); ok && rest != "" {
		return "/" + rest
	}
	return cmp.Or(rctx.RoutePath, "/")
}

// maxRoots is how many routers that are in no other are cached at most.
const maxRoots = 100

// roots caches the places where routing begins.
type roots struct {
	last atomic.Pointer[place]

	mu  sync.Mutex
	all map[*chi.Mux]*place // guarded by mu
}

// of returns the place where a router begins to route.
func (s *roots) of(routes chi.Routes) *place {
	mux, ok := routes.(*chi.Mux)
	if !ok {
		return &place{routes: routes} // may not be comparable
	}
	if last := s.last.Load(); last != nil && last.routes == routes {
		return last
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	root := s.all[mux]
	if root == nil {
		if len(s.all) >= maxRoots || s.all == nil {
			s.all = make(map[*chi.Mux]*place)
		}
		root = &place{routes: routes}
		s.all[mux] = root
	}
	s.last.Store(root)
	return root
}
