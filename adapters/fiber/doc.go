// Package penstockfiber guards the handlers of a fiber v3 service with Penstock. Its name
// does not collide with that of fiber's own package:
//
//	import (
//		"github.com/gofiber/fiber/v3"
//		penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
//	)
//
//	app := fiber.New()
//	app.Use(recover.New(), penstockfiber.Middleware(nil, penstockfiber.Options{}))
//	app.Get("/orders/:id", orders) // is the resource "GET:/orders/:id"
//
// What is in Use runs before fiber knows the route. The middleware looks it up in a
// second router with the same routes, so names are right in Use of an App, of a group and of a
// mounted App, and at a route. Raw paths never become resource names: all requests that no
// route matches, and those with a method that the route does not have, are the one resource
// [nethttp.Unmatched].
//
// fiber reuses the memory of requests. All texts that rules look at are copies, and so are
// the names of callers. What [Options.Attributes] returns must be copies, too:
// core.String("user", strings.Clone(c.Get("X-User"))).
//
// Refused requests are answered as in package nethttp: with 429, the header fields
// Retry-After, RateLimit and RateLimit-Policy, and a problem body (RFC 9457). A call
// counts as failed if its status is 500 or above, if the handler returns an error whose
// status is no 4xx, or if it panics; the middleware recover still sees the panic, and
// fiber's ErrorHandler the error.
//
// # What fiber does not tell
//
// fasthttp does not notice that a client disconnects while its request is served or waits.
// A call that waits in a queue keeps its place until it passes or its wait ends: keep
// MaxWait short. What ends the wait sooner is the context of the request, [fiber.Ctx.Context],
// which is yours: the middleware timeout sets one with a deadline. Shutting the server down
// waits for calls that wait. A call counts as one whose client has left only if that context
// is cancelled.
//
// A response that is streamed, by SendStreamWriter or SendStream, and a connection that is
// hijacked, as for WebSockets, outlast the handler: the call lasts until the response is
// written, or the function that hijacked has returned.
package penstockfiber
