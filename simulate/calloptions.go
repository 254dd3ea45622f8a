package simulate

import "github.com/penstock-go/penstock/core"

// commonOptions returns the options that all calls of a stream have in common.
func commonOptions(of Stream) []core.Option {
	var options []core.Option
	if of.Tokens > 0 {
		options = append(options, core.Tokens(of.Tokens))
	}
	if of.Origin != "" {
		options = append(options, core.Origin(of.Origin))
	}
	if of.Inbound {
		options = append(options, core.Inbound())
	}
	return options
}

// callOptions returns the options for the k-th call of the stream, and the value
// of its first attribute, nil if there is none. It must be called for one call
// after the other.
func (s *stream) callOptions(k uint64) (options []core.Option, value any) {
	for i := range s.attrs {
		if v := s.attrs[i].value(k); i == 0 {
			value = v
		}
	}
	return s.options, value
}
