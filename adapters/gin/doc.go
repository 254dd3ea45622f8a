// Package penstockgin guards the handlers of a gin service with Penstock. Its name
// does not collide with that of gin's own package:
//
//	import (
//		"github.com/gin-gonic/gin"
//		penstockgin "github.com/penstock-go/penstock/adapters/gin"
//	)
//
//	router := gin.Default()
//	router.Use(penstockgin.Middleware(nil, penstockgin.Options{}))
//	router.GET("/orders/:id", orders) // is the resource "GET:/orders/:id"
//
// Raw paths never become resource names: all requests that no route matches are the
// one resource [nethttp.Unmatched].
//
// Refused requests are answered as in package nethttp: with 429, the header fields
// Retry-After, RateLimit and RateLimit-Policy, and a problem body (RFC 9457). A call
// counts as failed if its status is 500 or above, if a handler adds an error with
// [gin.Context.Error], or if it panics; gin.Recovery still sees the panic. A call
// whose client has disconnected does not count as failed.
package penstockgin
