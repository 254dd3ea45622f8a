// Package nethttp guards HTTP servers and clients of the standard library.
//
// On the server's side [Middleware] makes every request a guarded call of the
// resource "METHOD:/route/{template}". Put it directly around a
// [http.ServeMux], or around single handlers that a ServeMux calls:
//
//	mux := http.NewServeMux()
//	mux.Handle("GET /orders/{id}", orders) // is the resource "GET:/orders/{id}"
//	guarded := nethttp.Middleware(nil, nethttp.Options{})(mux)
//	log.Fatal(http.ListenAndServe(":8080", guarded))
//
// Raw paths and methods that clients make up never become names: what no route
// matches is the one resource [Unmatched]. Within another router, or with
// something else around the mux, say what the route is: see [MuxResource],
// [RouteResource] and docs/adapters.md.
//
// A refused request is answered with 429, the fields Retry-After, RateLimit and
// RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-10) and a problem body
// (RFC 9457). A response with a status from 500 up is a failure of the call, and
// so is a panic, which goes on to whoever recovers it; what comes of a client that
// has left is none.
//
// On the client's side [Transport] guards outgoing requests.
package nethttp
