// Package penstockecho guards the handlers of an echo v5 service with Penstock. Its name
// does not collide with that of echo's own package:
//
//	import (
//		"github.com/labstack/echo/v5"
//		penstockecho "github.com/penstock-go/penstock/adapters/echo"
//	)
//
//	e := echo.New()
//	e.Use(middleware.Recover(), penstockecho.Middleware(nil, penstockecho.Options{}))
//	e.GET("/orders/:id", orders) // is the resource "GET:/orders/:id"
//
// It belongs in Use, of the Echo or of a group, or at a route: what is in Pre runs before
// echo has routed. Raw paths never become resource names: all requests that no route
// matches, and those with a method that the route does not have, are the one resource
// [nethttp.Unmatched].
//
// Refused requests are answered as in package nethttp: with 429, the header fields
// Retry-After, RateLimit and RateLimit-Policy, and a problem body (RFC 9457). A call
// counts as failed if its status is 500 or above, if the handler returns an error whose
// status is no 4xx, or if it panics; Recover still sees the panic, and echo's
// HTTPErrorHandler the error. A call whose client has disconnected does not count as
// failed.
package penstockecho
