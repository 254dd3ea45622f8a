// Package routers shows how the middleware for net/http names the routes of routers that
// have no adapter of their own. Its tests prove it.
package routers
