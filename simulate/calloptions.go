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
	if priority, ok := rule.ParsePriority(of.Priority); ok {
		options = append(options, core.Priority(priority))
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
		switch v := value.(type) {
		case string:
			options = append(options, core.String(name, v))
		case int64:
			options = append(options, core.Int(name, v))
		case bool:
			options = append(options, core.Bool(name, v))
		}
	}
	return options, attrs
}
