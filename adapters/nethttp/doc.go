// Package nethttp guards HTTP servers and clients of the standard library.
//
// On the server [Middleware] makes every request a guarded call of the resource
// "METHOD:/route/{template}". Put it directly around a [http.ServeMux], or around
// single handlers that a ServeMux calls:
//
//	mux := http.NewServeMux()
//	mux.Handle("GET /orders/{id}", orders) // is the resource "GET:/orders/{id}"
//	guarded := nethttp.Middleware(nil, nethttp.Options{})(mux)
//	log.Fatal(http.ListenAndServe(":8080", guarded))
//
// Raw paths and methods that clients choose never become resource names: all
// requests that no route matches are the one resource [Unmatched]. With another
// router, or with another handler around the mux, set the route: see [MuxResource],
// [RouteResource] and docs/adapters.md.
//
// A refused request is answered with 429, the header fields Retry-After, RateLimit
// and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11), and a problem body
// (RFC 9457). A call counts as failed if its status is 500 or above, or if it panics;
// the panic is passed on. A call whose client has disconnected does not count as
// failed.
//
// A request has the priority that its caller chooses by a header field, if the caller is
// trusted, see [Options.PriorityHeader]. The context of the handler has it.
//
// On the client [Transport] guards outgoing requests and passes the priority of their
// context on. It can hold back requests that a server would reject, and retries, see package
// [github.com/penstock-go/penstock/adapters/outgoing].
package nethttp
