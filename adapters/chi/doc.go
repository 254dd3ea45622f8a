// Package penstockchi guards the handlers of a chi service with Penstock. It is the
// middleware of package nethttp, which knows the routes of chi wherever it stands: a
// middleware in Use of a router runs before chi has routed, so that [nethttp.Middleware]
// there could not tell the routes, and would limit nothing.
//
//	import (
//		"github.com/go-chi/chi/v5"
//		penstockchi "github.com/penstock-go/penstock/adapters/chi"
//	)
//
//	router := chi.NewRouter()
//	router.Use(middleware.Recoverer, penstockchi.Middleware(nil, nethttp.Options{}))
//	router.Get("/orders/{id}", orders) // is the resource "GET:/orders/{id}"
//
// Names are those of chi's RoutePattern, with the patterns of all routers on the way:
// "GET:/v1/orders/{id}" for a router that is mounted at /v1. Raw paths never become
// names: all requests that no route matches are the one resource [nethttp.Unmatched].
//
// The attributes "param:NAME" are the parameters of chi's route. Everything else,
// refusals, failures, streaming and the options, is as in package nethttp.
package penstockchi
