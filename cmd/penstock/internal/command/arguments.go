package command

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
)

// arguments accepts from least to most arguments. The question is the error if there
// are fewer.
func arguments(least, most int, question string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return errors.New(question)
		case len(args) > most:
			return fmt.Errorf("unexpected argument %q", args[most])
		default:
			return nil
		}
	}
}

// documentPaths accepts the paths of documents, at least one.
func documentPaths() cobra.PositionalArgs {
	return arguments(1, math.MaxInt, "which documents? Name files, directories, or - for standard input")
}
