package nethttp

import (
	"net/http"
	"sync"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Requests makes the requests that handlers of guarded calls get: [core.GuardFrom] finds the guard
// in their context. It is for adapters whose framework allocates nothing for a call. The zero value
// is ready to use, and it is safe for concurrent use. No request is used twice, as programs may
// keep them; four are allocated at a time, and one that is kept keeps the others.
type Requests struct{ blocks sync.Pool } // of *requestBlock that are not used up

const blockOfRequests = 4

type requestBlock struct {
	used  int
	calls [blockOfRequests]guardedCall
}

// guardedCall is the context of a call, and the request that has it.
type guardedCall struct {
	core.CallContext
	request http.Request
}

// enter returns a copy of a request for a call that has passed, and takes its guard over.
func (c *guardedCall) enter(r *http.Request, guard *core.Guard) *http.Request {
	c.Begin(r.Context(), guard)
	c.request = *r.WithContext(&c.CallContext)
	return &c.request
}

// Enter returns the request for the handler of a call that has passed, with its context, which
// has taken the guard over: see [core.CallContext]. If known is true, the context has the
// priority, too. Once the handler has returned, tell [HandBack].
func (s *Requests) Enter(r *http.Request, guard *core.Guard, p rule.Priority, known bool) (*http.Request, *core.CallContext) {
	block, ok := s.blocks.Get().(*requestBlock)
	if !ok {
		block = new(requestBlock)
	}
	c := &block.calls[block.used]
	if block.used++; block.used < blockOfRequests {
		s.blocks.Put(block)
	}
	with := c.enter(r, guard)
	if known {
		with = withPriority(with, p)
	}
	return with, &c.CallContext
}

// HandBack sets in a request what handlers have set in a copy of it, and those further out look
// for: what a router has found, and the form, whose temporary files the server removes. It is for
// adapters.
func HandBack(with, r *http.Request) {
	if with.Pattern != r.Pattern { // then the wildcards of the path differ, too
		*r = *with.WithContext(r.Context())
		return
	}
	if with.MultipartForm != r.MultipartForm {
		r.MultipartForm = with.MultipartForm
	}
	if r.Form == nil && with.Form != nil {
		r.Form, r.PostForm = with.Form, with.PostForm
	}
}
