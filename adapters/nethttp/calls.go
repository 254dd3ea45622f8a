package nethttp

import (
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// CallOptions are what the options of a middleware say of the call that a request is. R is
// what the framework has in place of a [*http.Request]. It is for adapters. Any of the
// functions may be nil; [Options] says what they are. It is safe for concurrent use if they
// are.
type CallOptions[R any] struct {
	Origin     func(R) string
	Tokens     func(R) int
	Attributes func(R) []core.Option
	Priority   func(R) rule.Priority

	// Chosen returns the priority that the caller has chosen and may choose, false if it has chosen none:
	// what [ChosenPriority] does. It goes before Priority.
	Chosen func(R) (p rule.Priority, ok bool)
}

// UsualOptions is how many options the call of a request has at most if
// [CallOptions.Attributes] returns no more than one: the length of the array for them.
const UsualOptions = 6

// Append appends the options for the call of a request, but for [core.Inbound] and
// [core.Attributes]. It returns who the caller is, "" if that is unknown, and how important the
// request is, as its caller has chosen, else as Priority says: known is false if nobody says that.
func (o *CallOptions[R]) Append(opts []core.Option, r R) (all []core.Option, origin string, p rule.Priority, known bool) {
	if o.Origin != nil {
		origin = o.Origin(r)
	}
	if o.Chosen != nil {
		p, known = o.Chosen(r)
	}
	if !known && o.Priority != nil {
		p, known = o.Priority(r), true
	}
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
	return opts, origin, p, known
}
