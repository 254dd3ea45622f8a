package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// ChosenPriority returns the priority that the caller of a request has chosen by a header field,
// whose name is in canonical form, and no higher one than it may choose; false if it has chosen
// none or is not trusted. trust is asked of what the framework has in place of the request, and goes before the
// address of the caller; it may be nil. It is for adapters.
func ChosenPriority[R any](
	a *Attributes, r *http.Request, field string, of R, trust func(R) (most rule.Priority, trusted bool),
) (chosen rule.Priority, ok bool) {
	var mayChoose func() (rule.Priority, bool)
	if trust != nil {
		mayChoose = func() (rule.Priority, bool) { return trust(of) }
	}
	return a.clients.Priority(r.Header[field], mayChoose, func() clientip.Address { return a.client(r) })
}

// withPriority returns a request whose context has the priority, see
// [core.ContextWithPriority]. It is the request itself if its context has that priority.
func withPriority(r *http.Request, p rule.Priority) *http.Request {
	if present, ok := core.PriorityFromContext(r.Context()); ok && present == p {
		return r
	}
	return r.WithContext(core.ContextWithPriority(r.Context(), p))
}

// passOnPriority returns a request with the priority of its context in the header field, and
// without the field if the context has none: what is there may come from a caller who is not
// trusted, as with a reverse proxy.
func passOnPriority(r *http.Request, field string, p rule.Priority, known bool) *http.Request {
	if _, there := r.Header[field]; !there && !known {
		return r
	}
	with := *r // a RoundTripper must not change the request
	with.Header = r.Header.Clone()
	if with.Header == nil {
		with.Header = make(http.Header)
	}
	if known {
		with.Header[field] = []string{p.String()}
	} else {
		delete(with.Header, field)
	}
	return &with
}
