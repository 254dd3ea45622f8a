package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// CallOptions are what the options of a middleware say of the call that a request is. R is
// what the framework has in place of a [*http.Request]. It is for adapters. Any of the
// functions may be nil; [Options] says what they are. It is safe for concurrent use if they
// are.
type CallOptions[R any] struct {
	Origin        func(R) string
	Tokens        func(R) int
	Attributes    func(R) []core.Option
	Priority      func(R) rule.Priority
	PriorityTrust func(R) (most rule.Priority, trusted bool)

	// PriorityHeader is [Options.PriorityHeader] in canonical form; "" if none is read.
	PriorityHeader string
}

// UsualOptions is how many options the call of a request has at most if
// [CallOptions.Attributes] returns no more than one: the length of the array for them.
const UsualOptions = 6

// OriginOf returns the name of the caller, "" if it is unknown.
func (o *CallOptions[R]) OriginOf(r R) string {
	if o.Origin == nil {
		return ""
	}
	return o.Origin(r)
}

// PriorityOf returns how important a request is: as its caller has chosen, else as Priority
// says. known is false if nobody says that. request is that of the framework.
func (o *CallOptions[R]) PriorityOf(
	r R, request *http.Request, attributes *Attributes,
) (p rule.Priority, known bool) {
	if o.PriorityHeader == "" {
		return o.OwnPriorityOf(r)
	}
	var trust func() (rule.Priority, bool)
	if o.PriorityTrust != nil {
		trust = func() (rule.Priority, bool) { return o.PriorityTrust(r) }
	}
	if p, ok := attributes.ChosenPriority(request, o.PriorityHeader, trust); ok {
		return p, true
	}
	return o.OwnPriorityOf(r)
}

// OwnPriorityOf returns what Priority says of a request; known is false if it is nil.
func (o *CallOptions[R]) OwnPriorityOf(r R) (p rule.Priority, known bool) {
	if o.Priority == nil {
		return rule.PriorityNormal, false
	}
	return o.Priority(r), true
}

// Append appends the options for the call of a request, but for [core.Inbound] and
// [core.Attributes].
func (o *CallOptions[R]) Append(opts []core.Option, r R, origin string, p rule.Priority) []core.Option {
	if p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	if origin != "" {
		opts = append(opts, core.Origin(origin))
	}
	if o.Tokens != nil {
		opts = append(opts, core.Tokens(o.Tokens(r)))
	}
	if o.Attributes != nil {
		opts = append(opts, o.Attributes(r)...)
	}
	return opts
}
