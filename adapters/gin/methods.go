package penstockgin

import (
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// routeMethods warns of rules for one method of a route that serves all. gin tells nothing of the
// other methods of a route: it serves several if one handler has answered two of them.
type routeMethods struct {
	*nethttp.RouteMethods
	seen atomic.Pointer[map[string]servedBy] // by the route; immutable
	mu   sync.Mutex                          // guards changes of seen
}

// servedBy is the first method that a route was called with, and the function that answered it.
type servedBy struct {
	method  string
	handler uintptr
}

// maxSeenRoutes is how many routes are looked at.
const maxSeenRoutes = 1000

func newRouteMethods(engine *core.Engine) *routeMethods {
	m := &routeMethods{RouteMethods: nethttp.NewRouteMethods(engine, slog.Default())}
	m.seen.Store(&map[string]servedBy{})
	return m
}

// served takes note of a request that was served.
func (m *routeMethods) served(c *gin.Context) {
	route := c.FullPath()
	switch first, known := (*m.seen.Load())[route]; {
	case route == "":
	case !known:
		m.add(route, servedBy{c.Request.Method, handlerOf(c)})
	case first.method != c.Request.Method:
		m.CheckIf(route, func() bool { return first.handler == handlerOf(c) })
	}
}

func (m *routeMethods) add(route string, first servedBy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := *m.seen.Load()
	if _, known := seen[route]; known || len(seen) >= maxSeenRoutes {
		return
	}
	seen = maps.Clone(seen)
	seen[route] = first
	m.seen.Store(&seen)
}

// handlerOf returns what identifies the main handler of a request.
func handlerOf(c *gin.Context) uintptr { return reflect.ValueOf(c.Handler()).Pointer() }
