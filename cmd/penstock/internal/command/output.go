package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// format is the value of a flag --output.
type format string

const (
	asText format = "text"
	asJSON format = "json"
)

// formatFlag gives a command the flag --output.
func formatFlag(cmd *cobra.Command) *format {
	f := asText
	cmd.Flags().VarP(&f, "output", "o", "write the answer as `text|json`")
	return &f
}

// String, Set and Type implement pflag.Value.
func (f *format) String() string { return string(*f) }

func (f *format) Set(text string) error {
	switch format(text) {
	case asText, asJSON:
		*f = format(text)
		return nil
	default:
		return fmt.Errorf("must be %s or %s", asText, asJSON)
	}
}

func (f *format) Type() string { return "text|json" }

// atLeastOnePath is for commands that read documents.
func atLeastOnePath(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("which documents? Name files, directories, or - for standard input")
	}
	return nil
}

// writeJSON writes a value for machines.
func (env Env) writeJSON(value any) error {
	encoder := json.NewEncoder(env.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return failure{ExitFailed, err}
	}
	return nil
}
