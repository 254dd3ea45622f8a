package nethttp

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/rule"
)

// Unmatched is the resource of all requests that no route matches, whatever their
// paths and methods are.
const Unmatched = "unmatched"

// maxNames is how many names a Names caches.
const maxNames = 10_000

// Names makes the names of resources, "METHOD:route". It caches the first 10,000, so
// that naming a call of these allocates nothing. It does not cache further ones, nor
// names of routes that are longer than the names of rules can be. Nothing is ever
// evicted: routes must come from the program, never from clients. The zero value is
// ready to use. It is safe for concurrent use and must not be copied.
type Names struct {
	known atomic.Pointer[map[endpoint]string] // immutable; read without the lock

	mu     sync.Mutex
	all    map[endpoint]string // guarded by mu: known and later names; nil if there are none
	misses int                 // guarded by mu: look-ups in all since known was replaced
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
	if len(route) > rule.MaxNameLength {
		return key.name()
	}
	known := n.known.Load()
	if known != nil {
		if name, ok := (*known)[key]; ok {
			return name
		}
		if len(*known) >= maxNames {
			return key.name()
		}
	}
	return n.add(key)
}

func (e endpoint) name() string { return e.method + ":" + e.route }

// add returns the name of an endpoint that known does not have. New names become
// known after as many look-ups under the lock as there are names, so that n names are
// copied a few times each, not n times.
func (n *Names) add(key endpoint) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = make(map[endpoint]string)
		if known := n.known.Load(); known != nil {
			maps.Copy(n.all, *known)
		}
	}
	name, ok := n.all[key]
	if !ok {
		name = key.name()
		if len(n.all) >= maxNames {
			return name
		}
		key.route = name[len(key.method)+1:] // the route may be part of a larger buffer
		n.all[key] = name
	}
	if n.misses++; n.misses >= len(n.all) || len(n.all) >= maxNames {
		all := n.all
		n.known.Store(&all)
		n.all, n.misses = nil, 0
	}
	return name
}

// boundedMethod returns constants only, because the method of a request may be part
// of a larger buffer, which a cached name would keep in memory.
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
