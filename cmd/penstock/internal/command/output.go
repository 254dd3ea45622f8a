package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// format is the format of the output.
type format string

const (
	asText format = "text"
	asJSON format = "json"
	asSVG  format = "svg"
)

// formatFlag adds the flag --output to a command, for text, JSON and the further
// formats.
func formatFlag(cmd *cobra.Command, further ...format) *format {
	known := append([]format{asText, asJSON}, further...)
	flag := &formatValue{chosen: asText}
	for _, f := range known {
		flag.known = append(flag.known, string(f))
	}
	cmd.Flags().VarP(flag, "output", "o", "write the answer as `"+flag.Type()+"`")
	// It fails only if the flag does not exist or has completions already.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(flag.known, cobra.ShellCompDirectiveNoFileComp))
	return &flag.chosen
}

// formatValue is the value of a flag --output.
type formatValue struct {
	chosen format
	known  []string
}

// String, Set and Type implement pflag.Value.
func (v *formatValue) String() string { return string(v.chosen) }

func (v *formatValue) Set(text string) error {
	if !slices.Contains(v.known, text) {
		last := len(v.known) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(v.known[:last], ", "), v.known[last])
	}
	v.chosen = format(text)
	return nil
}

func (v *formatValue) Type() string { return strings.Join(v.known, "|") }

// writeJSON writes a value as JSON.
func (env Env) writeJSON(value any) {
	encoder := json.NewEncoder(env.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value) // fails only if env.Out does, which Run checks
}

// errWriter is the output of commands. It keeps the first error, so that truncated output
// does not count as success.
type errWriter struct {
	to  io.Writer
	err error
}

func (a *errWriter) Write(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.to.Write(p)
	a.err = err
	return n, err
}
