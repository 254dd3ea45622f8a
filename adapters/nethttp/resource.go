package nethttp

import (
	"net/http"
	"reflect"
	"strings"
)

// Mux tells which pattern routes a request, as a [http.ServeMux] does and
// whatever embeds one.
type Mux interface {
	Handler(r *http.Request) (h http.Handler, pattern string)
}

// MuxResource names requests by the pattern that mux routes them by: the
// request for "/orders/7" that "GET /orders/{id}" matches is the resource
// "GET:/orders/{id}". The mux is asked before it is called, so the pattern is
// looked up twice. A mux that it calls in its turn is not asked.
//
// The method is that of the pattern, so that a HEAD request served by a GET
// pattern shares its ceiling; a pattern without one takes the method of the
// request (see [Names.Name]). A host in the pattern stays in the name,
// "GET:example.com/orders": the same path on another host is another route.
// Answers that the mux gives by itself, which are redirects, 404 and 405, are
// [Unmatched].
func MuxResource(mux Mux) func(*http.Request) string {
	names := new(Names)
	redirect := reflect.TypeOf(http.RedirectHandler("", 0))
	return func(r *http.Request) string {
		handler, pattern := mux.Handler(r)
		if reflect.TypeOf(handler) == redirect {
			// The mux makes its own redirects anew for every request, and for
			// some of them the pattern is the raw path. A redirect that was
			// registered is the same handler each time.
			if again, _ := mux.Handler(r); again != handler {
				return Unmatched
			}
		}
		return names.ofPattern(pattern, r.Method)
	}
}

// PatternResource names requests by [http.Request.Pattern], which a ServeMux
// sets before it calls a handler, and some other routers; the names are those of
// [MuxResource]. Requests that have none yet are [Unmatched].
func PatternResource() func(*http.Request) string {
	names := new(Names)
	return func(r *http.Request) string { return names.ofPattern(r.Pattern, r.Method) }
}

// RouteResource names requests by what the router says is their route: "GET" and
// "/orders/:id" make "GET:/orders/:id", see [Names]. Requests for which it
// returns "" are [Unmatched].
func RouteResource(route func(*http.Request) string) func(*http.Request) string {
	names := new(Names)
	return func(r *http.Request) string { return names.Name(r.Method, route(r)) }
}

// ofPattern names a call of a ServeMux pattern by a request of the method.
func (n *Names) ofPattern(pattern, method string) string {
	own, route := splitPattern(pattern)
	if own != "" {
		method = own
	}
	return n.Name(method, route)
}

// isNamedAfter says whether the resource has the route of a ServeMux pattern.
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
