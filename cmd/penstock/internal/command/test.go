package command

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

const testLong = `Test runs test files: cases that say which calls come and what is expected of the
rules. They run on a virtual clock, with the same engine that services run.

  rules: ../rules                      # files and directories, or the rules themselves
  cases:
    - name: a cold start warms up
      load: orders 2000/s for 20s
      expect:
        passed: 333 348 366 387 412 442 479 528 594 692 856 1000… ±2

A PATH is a test file or a directory, of which all files below it that end in
_test.yaml or _test.yml are run; "." when there is none.
docs/testing-rules.md describes all that can be written.

Exit code: 0 when all cases pass, 1 when some fail or cannot be run, 2 for a wrong
command line or when there is nothing to test, 3 when a test file cannot be read.`

// testFlags are the flags of penstock test.
type testFlags struct {
	verbose bool
	run     string
	lists   *string
	output  *format
}

func newTest(env Env) *cobra.Command {
	var t testFlags
	cmd := &cobra.Command{
		Use:   "test [PATH...] [flags]",
		Short: "Run the unit tests of rules",
		Long:  testLong,
		Example: `  penstock test
  penstock test -v tests/ --run 'cold start'
  penstock test --output json | jq '.files[].cases[] | select(.passed | not)'`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			return t.test(cmd.Context(), env, paths)
		},
	}
	cmd.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "list the cases that pass, too")
	cmd.Flags().StringVar(&t.run, "run", "", "run only cases whose name matches this `regexp`")
	t.lists = listsFlag(cmd)
	t.output = formatFlag(cmd)
	return cmd
}

func (t testFlags) test(ctx context.Context, env Env, paths []string) error {
	wanted, err := regexp.Compile(t.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	files, err := testFiles(paths)
	if err != nil {
		return err
	}
	lists, err := env.readLists(ctx, *t.lists)
	if err != nil {
		return err
	}
	var report testReport
	for _, path := range files {
		file, err := env.runTestFile(ctx, path, wanted, lists)
		if err != nil {
			return failure{ExitFailed, err}
		}
		env.warnOfLists(file.rules, lists, *t.lists)
		report.add(file)
		if *t.output == asText {
			file.write(env, t.verbose)
		}
	}
	if *t.output == asJSON {
		env.writeJSON(report)
	}
	switch {
	case report.Failed > 0:
		return failure{code: ExitNo}
	case report.Passed == 0:
		return fmt.Errorf("no case has a name that matches --run %q", t.run)
	}
	return nil
}

// testFiles returns the test files that are meant by the paths.
func testFiles(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var files []string
	for _, path := range paths {
		path = filepath.Clean(strings.TrimSuffix(path, "...")) // "./..." is ".", as for go test
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, failure{ExitFailed, err}
		case !info.IsDir():
			files = append(files, path)
			continue
		}
		below, err := testFilesBelow(path)
		if err != nil {
			return nil, failure{ExitFailed, err}
		}
		if len(below) == 0 {
			return nil, fmt.Errorf("there is no test below %s: the names of test files end in _test.yaml", path)
		}
		files = append(files, below...)
	}
	return files, nil
}

func testFilesBelow(directory string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != directory && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case !entry.IsDir() && !hidden && isTestFile(entry.Name()):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func isTestFile(name string) bool {
	return strings.HasSuffix(name, "_test.yaml") || strings.HasSuffix(name, "_test.yml")
}
