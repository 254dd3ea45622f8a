package command

import (
	"fmt"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// write shows the outcome of a file, as go test does of a package.
func (f testFile) write(env Env, verbose bool) {
	p := env.painter()
	f.found.Show(env.Out)
	for _, c := range f.Cases {
		c.write(env, f.Path, verbose)
	}
	switch {
	case f.Error != "":
		fmt.Fprintf(env.Out, "%s\n", wording.Printable(f.Error))
		fmt.Fprintf(env.Out, "%s\t%s [cannot be run]\n", p.paint(red, "FAIL"), f.Path)
	case f.broken():
		fmt.Fprintf(env.Out, "%s\t%s [%s]\n", p.paint(red, "FAIL"), f.Path, wording.Count(len(f.Mistakes), "mistake"))
	case f.failed():
		fmt.Fprintf(env.Out, "%s\t%s\t%.3fs\n", p.paint(red, "FAIL"), f.Path, f.Seconds)
	case len(f.Cases) == 0:
		fmt.Fprintf(env.Out, "%s\t%s\t%.3fs [no cases to run]\n", p.paint(green, "ok  "), f.Path, f.Seconds)
	default:
		fmt.Fprintf(env.Out, "%s\t%s\t%.3fs\n", p.paint(green, "ok  "), f.Path, f.Seconds)
	}
}

func (c testCase) write(env Env, path string, verbose bool) {
	p := env.painter()
	name := wording.Printable(c.Name)
	switch {
	case !c.Passed:
		fmt.Fprintf(env.Out, "%s: %s (%.2fs)\n", p.paint(red, "--- FAIL"), name, c.Seconds)
	case verbose:
		fmt.Fprintf(env.Out, "%s: %s (%.2fs)\n", p.paint(green, "--- PASS"), name, c.Seconds)
	}
	if c.Error != "" {
		fmt.Fprintf(env.Out, "    %s\n", wording.Printable(c.Error))
	}
	for _, f := range c.Failures {
		writeFailure(env, path, f)
	}
}

// writeFailure shows where an expectation stands and in what it does not hold.
func writeFailure(env Env, path string, f scenario.Failure) {
	const most = 10 // differences
	subject := f.Field
	if f.Calls != "" {
		subject = "calls of " + f.Calls + ": " + subject
	}
	if f.Resource != "" {
		subject = f.Resource + ": " + subject
	}
	fmt.Fprintf(env.Out, "    %s:%d:%d: %s %s\n", path, f.Line, f.Column, wording.Printable(subject), f.Message)
	for _, d := range f.Differences[:min(most, len(f.Differences))] {
		where := d.Where
		if where != "" {
			where += ": "
		}
		fmt.Fprintf(env.Out, "        %s\n", wording.Printable(fmt.Sprintf("%sgot %s, want %s", where, d.Got, d.Want)))
	}
	if more := len(f.Differences) - most; more > 0 {
		fmt.Fprintf(env.Out, "        and %d more\n", more)
	}
	if f.Got != "" {
		fmt.Fprintf(env.Out, "        got: %s\n", f.Got)
	}
}
