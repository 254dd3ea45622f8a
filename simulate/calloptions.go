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
