package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

const validateLong = `Validate reads rule documents and shows every mistake at once: the place, what is
wrong and what to do about it. Two rules with the same name in different documents
are a mistake, too.

A PATH is a file, a directory or "-" for standard input. In a directory, the files
that end in .yaml, .yml or .json and do not begin with a dot are documents. These
are the files that a service reads that follows the directory (datasource/file).
Files in subdirectories that look like documents are listed as ignored; with
--recursive they are read, too, as by penstock push.

It warns of rules that have ended and do nothing any more. With --lists it warns of
rules that name a list which is not there, and reads the lists, whose mistakes count.

A kind that this penstock does not know is a mistake: it may be misspelled. If the
service brings kinds of its own, --allow-unknown-kinds leaves their rules unchecked,
with a warning, or build a penstock that knows them ("Kinds of your own" in
docs/rules.md).

With --for, rules that penstock serve cannot enforce are mistakes, too: those that need
to know how a call ends, which proxies do not say, and for rlqs those that are no rate.
For rls and rlqs it warns of rules that requests do not reach by what serve says.

Exit code: 0 without mistakes, 1 with, 2 for a wrong command line, 3 when a file
cannot be read.`

func newValidate(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate PATH... [flags]",
		Short: "Find every mistake in rule documents",
		Long:  validateLong,
		Example: `  penstock validate rules/
  penstock validate rules/ more/extra.yaml
  penstock validate --recursive rules/          # as penstock push reads them
  penstock validate --for rls rules/            # can penstock serve have them?
  render-rules | penstock validate -
  penstock validate --output json rules/ | jq '.problems[].message'`,
		Args: documentPaths(),
	}
	allow := unknownKindsFlag(cmd)
	recursive := cmd.Flags().Bool("recursive", false, "read folders below a directory, too, as push does")
	lists := listsFlag(cmd)
	target := cmd.Flags().String("for", "", "the `protocol` of penstock serve that is to enforce the rules: rls, rlqs, ext-authz, forward-auth or hold")
	output := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		check, err := checkFor(*target)
		if err != nil {
			return err
		}
		var read []documents.Document
		var ignored []string
		if *recursive {
			read, err = documents.Read(cmd.Context(), env.input(), paths...)
		} else {
			read, ignored, err = documents.ReadFlat(cmd.Context(), env.input(), paths...)
		}
		if err != nil {
			return failure{ExitFailed, err}
		}
		unknown := documents.Mistakes
		if *allow {
			unknown = documents.LeftOut
		}
		registry, err := env.readLists(cmd.Context(), *lists)
		if err != nil {
			return err
		}
		judged := documents.Judge(env.table(), read, unknown)
		if problems, ok := errors.AsType[rules.Problems](check(judged.Rules, env.Kinds...)); ok {
			judged.Problems = append(judged.Problems, problems...)
		}
		warnings := append(unknownKinds(judged.Unknown), endedRules(judged.Rules, time.Now())...)
		if *target == "rls" || *target == "rlqs" {
			warnings = append(warnings, env.unreached(judged.Rules)...)
		}
		if *lists != "" {
			warnings = append(warnings, missingLists(judged.Rules, registry.Names(), "at "+*lists)...)
		}
		return env.printMistakes(judged, ignored, warnings, *output)
	}
	return cmd
}

// checkFor returns what says which rules penstock serve cannot have in force for a protocol; "" is for none.
func checkFor(protocol string) (check func(rules.Set, ...rule.Definition) error, err error) {
	switch protocol {
	case "":
		return func(rules.Set, ...rule.Definition) error { return nil }, nil
	case "rls", "hold":
		return serve.Check, nil
	case "rlqs":
		return serve.CheckQuotas, nil
	case "ext-authz", "forward-auth":
		return serve.CheckHTTP, nil
	}
	return nil, fmt.Errorf("--for is %q: must be rls, rlqs, ext-authz, forward-auth or hold", protocol)
}

// unreached warns of rules that no request of a proxy reaches.
func (env Env) unreached(set rules.Set) (warnings []string) {
	problems, _ := errors.AsType[rules.Problems](serve.Unreached(set, env.Kinds...))
	for _, p := range problems {
		warnings = append(warnings, p.Error())
	}
	return warnings
}

// printMistakes prints the mistakes in documents, warnings, and which files were ignored.
func (env Env) printMistakes(c documents.Collection, ignored, warnings []string, output format) error {
	if len(ignored) > 0 {
		env.note("ignored, as by a service that follows the directory: %s (penstock push takes what is in folders below: --recursive reads it)",
			wording.List(ignored))
	}
	if output == asJSON {
		env.writeJSON(mistakesJSON(c, ignored, warnings))
	} else {
		for _, warning := range warnings {
			env.warn(warning)
		}
		c.Show(env.Out)
		fmt.Fprintln(env.Out, c.Summary())
		hintAtKinds(env.Out, c, true)
	}
	if len(c.Problems) > 0 {
		return failure{code: ExitNo}
	}
	return nil
}

type problemJSON struct {
	Document string    `json:"document"`
	Line     int       `json:"line"`
	Column   int       `json:"column"`
	Kind     rule.Kind `json:"kind"`
	Rule     string    `json:"rule"`
	Field    string    `json:"field"`
	Message  string    `json:"message"`
}

func mistakesJSON(c documents.Collection, ignored, warnings []string) any {
	return struct {
		Documents int           `json:"documents"`
		Rules     int           `json:"rules"` // of documents without mistakes
		Problems  []problemJSON `json:"problems"`
		Ignored   []string      `json:"ignored,omitempty"` // the paths of files
		Warnings  []string      `json:"warnings,omitempty"`
	}{len(c.Documents), c.Rules.Len(), problemsJSON(c.Problems), ignored, warnings}
}

func problemsJSON(problems rules.Problems) []problemJSON {
	list := make([]problemJSON, len(problems))
	for i, p := range problems {
		list[i] = problemJSON{p.Document, p.Line, p.Column, p.Kind, p.Rule, p.Field, p.Message}
	}
	return list
}
