package nethttp

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// Unmatched is the resource of all requests that no route of the program
// matches: they share this one name, whatever their paths and methods are.
const Unmatched = "unmatched"

// Names makes the names of resources, "METHOD:route", and remembers them, so
// that naming a call allocates nothing. Nothing is ever forgotten: routes have
// to come from the program, never from clients. The zero value is ready; it is
// safe for concurrent use and must not be copied.
type Names struct {
	known atomic.Pointer[map[endpoint]string] // immutable
	mu    sync.Mutex                          // guards replacing known
}

type endpoint struct{ method, route string }

// Name returns "METHOD:route". A method other than the nine standard ones
// becomes "OTHER", so that a route has at most ten names; an empty one is GET,
// as it is for clients. The empty route gives [Unmatched].
func (n *Names) Name(method, route string) string {
	if route == "" {
		return Unmatched
	}
	key := endpoint{boundedMethod(method), route}
	if known := n.known.Load(); known != nil {
		if name, ok := (*known)[key]; ok {
			return name
		}
	}
	return n.add(key)
}

func (n *Names) add(key endpoint) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := make(map[endpoint]string)
	if known := n.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	key.route = strings.Clone(key.route)
	next[key] = key.method + ":" + key.route
	n.known.Store(&next)
	return next[key]
}

// boundedMethod returns constants only: the method of a request may be part of
// a larger buffer, which a remembered name would keep alive.
func boundedMethod(method string) string {
	switch method {
	case http.MethodGet, "":
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	case http.MethodPost:
		return http.MethodPost
	case http.MethodPut:
		return http.MethodPut
	case http.MethodPatch:
		return http.MethodPatch
	case http.MethodDelete:
		return http.MethodDelete
	case http.MethodConnect:
		return http.MethodConnect
	case http.MethodOptions:
		return http.MethodOptions
	case http.MethodTrace:
		return http.MethodTrace
	}
	return "OTHER"
}
