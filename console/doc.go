// Package console is a web page for those who run services: what passes and what is refused, by which
// rule, and the rules themselves. It shows one process,
//
//	mux.Handle("/penstock/", console.Handler(console.Options{Engine: engine}))
//
// or all instances of an application, which report to etcd where their handlers of the package inspect
// are, see [Options.Store]; "penstock console" is a program that does so. The page needs nothing but the
// handler: no other host, and no other files.
//
// Everybody who reaches the handler may look, and nobody may change anything, unless [Options.Authorize]
// says who is who. Requests that a browser sends for pages of others are refused: for hosts that
// [Options.Hosts] does not name, and from other origins.
package console
