package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rejectRepeatedFlags makes all commands return an error for a flag that is given twice with
// different values, unless it takes several: by default the last one would count.
func rejectRepeatedFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, several := flag.Value.(pflag.SliceValue); !several {
			flag.Value = &onceValue{Value: flag.Value}
		}
	})
	for _, sub := range cmd.Commands() {
		rejectRepeatedFlags(sub)
	}
}

// onceValue is the value of a flag that has one value.
type onceValue struct {
	pflag.Value
	given *string // nil if it is not given
}

// Set implements pflag.Value.
func (v *onceValue) Set(text string) error {
	if v.given != nil && *v.given != text {
		return fmt.Errorf("%q is given too: leave one out", *v.given)
	}
	v.given = &text
	return v.Value.Set(text)
}
