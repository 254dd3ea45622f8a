package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// GuardedCall is embedded by the ResponseWriters of guarded calls: by it [IsGuarded] finds
// the calls of a request. It is for adapters whose frameworks have such a writer.
type GuardedCall struct {
	Engine   *core.Engine
	Resource string
}

// guardedBy reports whether the call is one of the resource, for [IsGuarded].
func (c *GuardedCall) guardedBy(engine *core.Engine, resource string) bool {
	return c.Engine == engine && c.Resource == resource
}

// IsGuarded reports whether an outer middleware already guards the request as a call of the
// resource: whether a writer that has a [GuardedCall] in it says so. It
// unwraps the writers of other middlewares. It is for adapters.
//
// A mark in the context of the request would need a copy of the request, and outer handlers
// would then not see the pattern.
func IsGuarded(w http.ResponseWriter, engine *core.Engine, resource string) bool {
	for w != nil {
		call, ok := w.(interface {
			guardedBy(engine *core.Engine, resource string) bool
		})
		if ok && call.guardedBy(engine, resource) {
			return true
		}
		w = unwrapped(w)
	}
	return false
}

// MarkRefused says that the response passes on the refusal of a call that the handler
// made: the guarded calls of the request do not count as failed then, whatever the
// status is. [WriteProblem] and [Answers.WriteRefused] do it by themselves; it is for
// handlers that answer a refusal in another way. It finds the calls through the
// ResponseWriter: wrappers in between must have a method Unwrap.
func MarkRefused(w http.ResponseWriter) {
	for w != nil {
		if call, ok := w.(interface{ PassRefusal() }); ok {
			call.PassRefusal()
		}
		w = unwrapped(w)
	}
}

// unwrapped returns the writer within a writer, nil if there is none.
func unwrapped(w http.ResponseWriter) http.ResponseWriter {
	if wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return wrapper.Unwrap()
	}
	return nil
}

// markRefused is MarkRefused for the response to a refused call. An injected fault is as
// good as a failure: the calls further out count as failed if the status says so.
func markRefused(w http.ResponseWriter, block *core.BlockError) {
	if block.Reason != rule.Injected {
		MarkRefused(w)
	}
}
