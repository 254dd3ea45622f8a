package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Priorities reads the priorities that callers choose for their requests. It is for
// adapters; make it with [NewPriorities]. It is safe for concurrent use.
type Priorities struct {
	header string // in canonical form; "" if none is read
	trust  priority.Trust
}

// NewPriorities returns the priorities in the header field of requests, "" for none, and
// which callers are trusted with it.
func NewPriorities(header string, callers []priority.Callers) *Priorities {
	return &Priorities{http.CanonicalHeaderKey(header), priority.NewTrust(callers)}
}

// Chosen returns the priority that the caller of a request has chosen, and no higher one
// than it may choose; false if it has chosen none or is not trusted. trust goes before the
// address of the caller, which attributes tell; it may be nil.
func (p *Priorities) Chosen(
	r *http.Request, attributes *Attributes, trust func() (most rule.Priority, trusted bool),
) (chosen rule.Priority, ok bool) {
	if p.header == "" {
		return rule.PriorityNormal, false
	}
	return p.trust.Choose(r.Header[p.header], trust, func() clientip.Address { return attributes.client(r) })
}

// WithPriority returns a request whose context has the priority, see
// [core.ContextWithPriority]. It is the request itself if its context has that priority.
func WithPriority(r *http.Request, p rule.Priority) *http.Request {
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
