// Package inspect shows over HTTP what an engine holds: which rules are in
// force, where they come from, and which of them a call would be held against.
// The command penstock explain asks it. Its answer to ready is made for the probe
// that decides whether a process gets calls; readinessOf gives it to a service
// that has a handler for that already.
//
// [Handler] only reads, and remembers nothing of what it is asked but that it was ready and, for a
// minute, what response times it has shown. It tells names
// of resources and of callers, limits, what is wrong with documents, and of rules for
// each value of an attribute the values that are called most, such as names of users
// and addresses of clients. That is not for everybody: mount it on a listener of its own
// that only the machine itself, or whoever operates it, can reach. A rule whose document
// says "mask: hash" shows a hash in place of each value.
//
//	go http.ListenAndServe("127.0.0.1:6060", inspect.Handler(engine, inspect.Options{}))
//
// It answers below any path, so that http.Handle("/debug/penstock/", handler)
// serves as well. It listens to nothing by itself and registers nowhere.
package inspect
