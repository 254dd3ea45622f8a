package penstockchi

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/penstock-go/penstock/adapters/nethttp"
)

// finder looks up the routes of requests before chi has routed them to the end. The
// zero value is ready to use. It is safe for concurrent use.
type finder struct {
	roots    roots
	contexts sync.Pool // of *chi.Context, for look-ups
}

// route is a route of a chi router.
type route struct{ method, pattern string }

func (f *finder) resource() func(*http.Request) string {
	names, elsewhere := new(nethttp.Names), nethttp.PatternResource()
	return func(r *http.Request) string {
		if chi.RouteContext(r.Context()) == nil {
			return elsewhere(r)
		}
		found := f.route(r)
		return names.Name(found.method, found.pattern)
	}
}

// route returns the route that will serve a request; without a pattern if there is none.
func (f *finder) route(r *http.Request) route {
	rctx := chi.RouteContext(r.Context())
	if rctx == nil {
		return route{}
	}
	scratch := f.scratch()
	defer f.contexts.Put(scratch)
	return route{methodOf(rctx, r), f.find(rctx, scratch, r)}
}

// served returns the route that has served a request; without a pattern if none has.
func (f *finder) served(rctx *chi.Context) route {
	at := f.roots.of(rctx.Routes).follow(rctx.RoutePatterns)
	// Older versions of chi do not list a route that replaces the path of a mounted router.
	replaced := at.exact && rctx.RoutePath != "/"
	if at.routes != nil && !replaced {
		return route{} // that router has no such route
	}
	return route{rctx.RouteMethod, at.pattern}
}

// param returns the value of a parameter of the route that will serve a request. chi
// leaves values escaped where the path has unusual escapes: they are unescaped, so
// that one value has one form.
func (f *finder) param(r *http.Request, name string) (value string, ok bool) {
	rctx := chi.RouteContext(r.Context())
	if rctx == nil {
		return "", false
	}
	scratch := f.scratch()
	defer f.contexts.Put(scratch)
	pattern := f.find(rctx, scratch, r)
	if pattern == "" || name == "*" && !strings.HasSuffix(pattern, "*") { // of a router that is mounted
		return "", false
	}
	value, ok = lastParam(&scratch.URLParams, name)
	if !ok {
		value, ok = lastParam(&rctx.URLParams, name)
	}
	if r.URL.RawPath != "" {
		if text, err := url.PathUnescape(value); err == nil {
			value = text
		}
	}
	return value, ok
}

// find returns the pattern of the route that will serve a request, "" if there is none.
// The scratch context gets the parameters that chi's context does not have yet.
func (f *finder) find(rctx, scratch *chi.Context, r *http.Request) string {
	return f.findFor(methodOf(rctx, r), rctx, scratch, r)
}

// servesAll says whether a route, which will serve a request, serves all methods.
func (f *finder) servesAll(rctx *chi.Context, r *http.Request, pattern string) bool {
	for _, method := range []string{http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodTrace} {
		scratch := f.scratch()
		found := f.findFor(method, rctx, scratch, r)
		f.contexts.Put(scratch)
		if found != pattern {
			return false
		}
	}
	return true
}

// findFor is find for another method than that of the request.
func (f *finder) findFor(method string, rctx, scratch *chi.Context, r *http.Request) string {
	const maxRouters = 32 // each within the one before; a router within itself has no end
	at := f.roots.of(rctx.Routes).follow(rctx.RoutePatterns)
	path := at.pathOf(rctx, r)
	for range maxRouters {
		if at.routes == nil {
			return at.pattern
		}
		scratch.RoutePath, scratch.RoutePatterns = "", scratch.RoutePatterns[:0]
		if !at.routes.Match(scratch, method, path) {
			return ""
		}
		at = at.follow(scratch.RoutePatterns)
		path = cmp.Or(scratch.RoutePath, path)
		if at.mounted {
			path = "/" // Match follows all others
		}
	}
	return ""
}

// methodOf returns the method by which chi routes a request.
func methodOf(rctx *chi.Context, r *http.Request) string { return cmp.Or(rctx.RouteMethod, r.Method) }

// lastParam returns the last value of a parameter, which is the one that handlers see.
func lastParam(params *chi.RouteParams, name string) (value string, ok bool) {
	for i := min(len(params.Keys), len(params.Values)) - 1; i >= 0; i-- {
		if params.Keys[i] == name {
			return params.Values[i], true
		}
	}
	return "", false
}

func (f *finder) scratch() *chi.Context {
	scratch, ok := f.contexts.Get().(*chi.Context)
	if !ok {
		return chi.NewRouteContext()
	}
	scratch.Reset()
	return scratch
}

func withRoute(ctx context.Context, rctx *chi.Context) context.Context {
	return context.WithValue(ctx, chi.RouteCtxKey, rctx)
}
