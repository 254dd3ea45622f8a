// Package penstockgin guards the handlers of a gin service with Penstock. It is
// named so that it can stand in one file with gin's own package:
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
// Raw paths never become names: what no route matches is the one resource
// [nethttp.Unmatched].
//
// Refused requests are answered as by the package nethttp: with 429, the fields
// Retry-After, RateLimit and RateLimit-Policy and a problem body (RFC 9457). A
// status from 500 up is a failure of the call, and so are errors that a handler
// leaves with [gin.Context.Error], and a panic, which goes on to gin.Recovery;
// what happens after the client has left is none.
package penstockgin
