package simulate

import (
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// commonOptions returns the options that all calls of a stream have in common.
func commonOptions(of Stream) []core.Option {
	var options []core.Option
	if of.Tokens > 0 || of.Cost != nil {
		options = append(options, core.Tokens(tokensOf(of)))
	}
	if of.Origin != "" {
		options = append(options, core.Origin(of.Origin))
	}
	if of.Inbound {
		options = append(options, core.Inbound())
	}
	if of.Priority != rule.PriorityNormal {
		options = append(options, core.Priority(of.Priority))
	}
	return slices.Clip(options)
}

// callOptions returns the options for the k-th call of the stream, and its
// attributes. It must be called for one call after the other.
func (s *stream) callOptions(k uint64) (options []core.Option, attrs AttrValues) {
	options = s.options
	if len(s.attrs) == 0 {
		return options, nil
	}
	attrs = make(AttrValues, len(s.attrs))
	for i := range s.attrs {
		name, value := s.attrs[i].Name, s.attrs[i].value(k)
		attrs[i] = AttrValue{Name: name, Value: value}
		options = append(options, attributeOption(name, value))
	}
	return options, attrs
}

// attributeOption returns the option that gives a call an attribute.
func attributeOption(name string, value any) core.Option {
	plain, _ := plainValue(value) // the load is valid
	switch v := plain.(type) {
	case int64:
		return core.Int(name, v)
	case bool:
		return core.Bool(name, v)
	}
	return core.String(name, plain.(string))
}
