package nethttp

import (
	"net/http"
	"reflect"
	"strings"
)

// Mux returns the pattern that matches a request, as [http.ServeMux] does, and types
// that embed it.
type Mux interface {
	Handler(r *http.Request) (h http.Handler, pattern string)
}

// MuxResource names requests by the pattern of the mux that matches them: the
// request for "/orders/7" that "GET /orders/{id}" matches is the resource
// "GET:/orders/{id}". The pattern is looked up twice, here and when the mux is
// called. Patterns of a mux inside the mux are not used.
//
// The method is that of the pattern, so that a HEAD request served by a GET
// pattern shares its limit; without one it is the method of the request (see
// [Names.Name]). A host in the pattern stays in the name, "GET:example.com/orders":
// the same path on another host is another route. Responses of the mux itself, which
// are redirects, 404 and 405, are [Unmatched].
func MuxResource(mux Mux) func(*http.Request) string {
	names := new(Names)
	redirect := reflect.TypeOf(http.RedirectHandler("", 0))
	return func(r *http.Request) string {
		handler, pattern := mux.Handler(r)
		if reflect.TypeOf(handler) == redirect {
			// The mux makes a new handler for each redirect of its own, and for
			// some of them the pattern is the raw path. A redirect that was
			// registered is the same handler each time.
			if again, _ := mux.Handler(r); again != handler {
				return Unmatched
			}
		}
		return names.ofPattern(pattern, r.Method)
	}
}

// PatternResource names requests by [http.Request.Pattern], which ServeMux and some
// other routers set before they call a handler. The names are those of [MuxResource].
// Requests without a pattern are [Unmatched].
func PatternResource() func(*http.Request) string {
	names := new(Names)
	return func(r *http.Request) string { return names.ofPattern(r.Pattern, r.Method) }
}

// RouteResource names requests by their method and the route that the function
// returns, for instance from a router: "GET" and "/orders/:id" make
// "GET:/orders/:id", see [Names]. Requests for which it returns "" are [Unmatched].
func RouteResource(route func(*http.Request) string) func(*http.Request) string {
	names := new(Names)
	return func(r *http.Request) string { return names.Name(r.Method, route(r)) }
}

// ofPattern returns the name for a ServeMux pattern and the method of a request.
func (n *Names) ofPattern(pattern, method string) string {
	own, route := splitPattern(pattern)
	if own != "" {
		method = own
	}
	return n.Name(method, route)
}

// isNamedAfter reports whether the resource has the route of a ServeMux pattern.
func isNamedAfter(resource, pattern string) bool {
	_, named, _ := strings.Cut(resource, ":")
	_, route := splitPattern(pattern)
	return named == route
}

// splitPattern splits a ServeMux pattern, "[METHOD ][HOST]/[PATH]".
func splitPattern(pattern string) (method, route string) {
	if i := strings.IndexAny(pattern, " \t"); i > 0 && !strings.Contains(pattern[:i], "/") {
		return pattern[:i], strings.TrimLeft(pattern[i:], " \t")
	}
	return "", pattern
}
