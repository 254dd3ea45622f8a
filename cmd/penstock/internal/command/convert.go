package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/convert"
	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

const convertLong = `Convert turns files of rules of Sentinel, Envoy, nginx and resilience4j into
one rule document of Penstock, written to standard output or to the file named
by --file.

A file is what a data source, a registry or a dashboard of Sentinel has, with
the field names of Go or of Java: flow rules, isolation rules, circuit breakers
(degrade rules), rules for hot parameters, authority rules, gateway rules and
system rules, also in the zip archive that the console of Nacos exports. Or it
is a configuration of Envoy's rate limit service, a configuration of nginx with
limit_req and limit_conn lines, or an application.yml with resilience4j in it.
"-" and no file at all stand for standard input.

What is found is of three classes, and reported on standard error with its line.
"understood" has no effect where it comes from, such as a rule that is switched
off, and is not written. "differs" is written, and behaves otherwise here. What
is "left out" has an effect that no rule here has, or is not understood: then
nothing is written, so that no limit goes missing unnoticed. With --partial the
rest is written, below a comment that lists what is missing. A rule whose limit
is not understood is never written.

Exit code: 0 when the document is written, 1 when something was left out (without
--partial) or cannot be read as rules, 2 for a wrong command line, 3 when a file
cannot be read or written.`

func newConvert(env Env) *cobra.Command {
	var file, output string
	var partial bool
	c := &cobra.Command{
		Use:   "convert [FILE...] [flags]",
		Short: "Turn rules of Sentinel, Envoy, nginx and resilience4j into a rule document",
		Long:  convertLong,
		Example: `  penstock convert flow-rules.json --file rules/orders.yaml
  kubectl get configmap sentinel -o jsonpath='{.data.flow}' | penstock convert --partial`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			to, err := fileOf(file, output)
			if err != nil {
				return err
			}
			if output != "" {
				env.warn("--output is a format everywhere else: --file names the file to write to")
			}
			files, err := readSentinel(cmd.Context(), env.input(), paths)
			if err != nil {
				return failure{ExitFailed, err}
			}
			return writeConverted(env, files, to, partial)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "write the document to this `file`")
	c.Flags().StringVarP(&output, "output", "o", "", "what --file is, in earlier versions")
	_ = c.Flags().MarkHidden("output") // it fails for a flag that is not there
	c.Flags().BoolVar(&partial, "partial", false, "write what can be converted even if something is left out")
	return c
}

// fileOf returns the file to write to, "" for none, of what --file and --output
// say. Elsewhere --output is a format, so one is not taken for the name of a file.
func fileOf(file, output string) (string, error) {
	switch {
	case file != "" && output != "":
		return "", errors.New("--output and --file are the same here: leave --output out")
	case slices.Contains([]string{string(asText), string(asJSON), string(asSVG), "yaml", "yml"}, strings.ToLower(output)):
		return "", fmt.Errorf("--output %s: the document is written as YAML, the only format there is; to write it to a file of that name say --file %s",
			output, output)
	default:
		return cmp.Or(file, output), nil
	}
}

func writeConverted(env Env, files []convert.File, output string, partial bool) error {
	conversion := convert.Convert(files...)
	for _, f := range conversion.Findings {
		fmt.Fprintln(env.Err, f)
	}
	switch {
	case conversion.Has(convert.Unreadable):
		return failure{ExitNo, errors.New("nothing was written")}
	case conversion.Has(convert.LeftOut) && !partial:
		return failure{ExitNo, errors.New("nothing was written, as something would be missing: --partial writes the rest")}
	}
	document, err := conversion.YAML()
	if err != nil {
		return failure{ExitNo, err}
	}
	if output == "" {
		_, _ = env.Out.Write(document)
		return nil
	}
	if err := os.WriteFile(output, document, 0o644); err != nil { //nolint:gosec // rules are there to be read
		return failure{ExitFailed, err}
	}
	return nil
}

// readSentinel reads the files, "-" and none standing for standard input.
func readSentinel(ctx context.Context, in io.Reader, paths []string) ([]convert.File, error) {
	if len(paths) == 0 {
		paths = []string{"-"}
	}
	all := make([]convert.File, len(paths))
	for i, path := range paths {
		var err error
		if path == "-" {
			all[i].Name = "stdin"
			all[i].Data, err = files.ReadInput(ctx, in)
		} else {
			all[i].Name = path
			all[i].Data, err = files.Read(ctx, path)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
