package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rules"
)

func newValidate(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate PATH... [flags]",
		Short: "Find every mistake in rule documents",
		Long: `Validate reads rule documents and tells every mistake at once: the place, what
is wrong and what to do about it. A rule whose name another document has taken
is a mistake, too.

A PATH is a file, a directory or "-" for standard input. Of a directory, the files
in it that end in .yaml, .yml or .json are documents; what begins with a dot is
passed over. These are the files that a service reads which follows the directory
(datasource/file). What else looks like a document, in a folder below, is told to
be ignored; with --recursive it is read as well, as penstock push reads it.

Exit code: 0 without mistakes, 1 with, 2 for a wrong command line, 3 when a file
cannot be read.`,
		Example: `  penstock validate rules/
  penstock validate rules/ more/extra.yaml
  penstock validate --recursive rules/          # as penstock push reads them
  render-rules | penstock validate -
  penstock validate --output json rules/ | jq '.problems[].message'`,
		Args: documentPaths(),
	}
	recursive := cmd.Flags().Bool("recursive", false, "read folders below a directory, too, as push does")
	output := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		var read []documents.Document
		var ignored []string
		var err error
		if *recursive {
			read, err = documents.Read(cmd.Context(), env.input(), paths...)
		} else {
			read, ignored, err = documents.ReadFlat(cmd.Context(), env.input(), paths...)
		}
		if err != nil {
			return failure{ExitFailed, err}
		}
		return env.tellMistakes(documents.Judge(read), ignored, *output)
	}
	return cmd
}

// tellMistakes writes what was found in documents, and which were ignored.
func (env Env) tellMistakes(c documents.Collection, ignored []string, output format) error {
	if len(ignored) > 0 {
		env.note("ignored, as by a service that follows the directory: %s (penstock push takes what is in folders below: --recursive reads it)",
			wording.List(ignored))
	}
	if output == asJSON {
		env.writeJSON(mistakesJSON(c, ignored))
	} else {
		c.Show(env.Out)
		fmt.Fprintln(env.Out, c.Summary())
	}
	if len(c.Problems) > 0 {
		return failure{code: ExitNo}
	}
	return nil
}

type problemJSON struct {
	Document string     `json:"document"`
	Line     int        `json:"line"`
	Column   int        `json:"column"`
	Kind     rules.Kind `json:"kind"`
	Rule     string     `json:"rule"`
	Field    string     `json:"field"`
	Message  string     `json:"message"`
}

func mistakesJSON(c documents.Collection, ignored []string) any {
	return struct {
		Documents int           `json:"documents"`
		Rules     int           `json:"rules"` // of documents without mistakes
		Problems  []problemJSON `json:"problems"`
		Ignored   []string      `json:"ignored,omitempty"` // the paths of files
	}{len(c.Documents), c.Rules.Len(), problemsJSON(c.Problems), ignored}
}

func problemsJSON(problems rules.Problems) []problemJSON {
	list := make([]problemJSON, len(problems))
	for i, p := range problems {
		list[i] = problemJSON{p.Document, p.Line, p.Column, p.Kind, p.Rule, p.Field, p.Message}
	}
	return list
}
