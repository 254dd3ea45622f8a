package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
)

// testReport is the outcome of test files, as --output json writes it.
type testReport struct {
	Passed int        `json:"passed"` // cases
	Failed int        `json:"failed"` // cases, and files with mistakes
	Files  []testFile `json:"files"`
}

// testFile is the outcome of one test file.
type testFile struct {
	Path     string        `json:"path"`
	Seconds  float64       `json:"seconds"` // that it took
	Mistakes []problemJSON `json:"mistakes"`
	Error    string        `json:"error,omitempty"` // why no case could be run
	Cases    []testCase    `json:"cases"`

	found documents.Collection // the mistakes and what they stand in
	rules rules.Set            // without mistakes
}

// testCase is the outcome of one case.
type testCase struct {
	Name     string             `json:"name"`
	Line     int                `json:"line"`
	Seconds  float64            `json:"seconds"`
	Passed   bool               `json:"passed"`
	Error    string             `json:"error,omitempty"` // why it could not be run
	Failures []scenario.Failure `json:"failures"`
}

func (r *testReport) add(f testFile) {
	r.Files = append(r.Files, f)
	if f.broken() {
		r.Failed++
	}
	for _, c := range f.Cases {
		if c.Passed {
			r.Passed++
		} else {
			r.Failed++
		}
	}
}

// broken says whether no case of the file could be run.
func (f testFile) broken() bool { return len(f.Mistakes) > 0 || f.Error != "" }

func (f testFile) failed() bool {
	for _, c := range f.Cases {
		if !c.Passed {
			return true
		}
	}
	return f.broken()
}

// runTestFile runs the cases of a file whose names are wanted. It fails only
// when the file cannot be read, or the user interrupts.
func (env Env) runTestFile(ctx context.Context, path string, wanted *regexp.Regexp, lists *list.Registry) (testFile, error) {
	begun := time.Now()
	data, err := files.Read(ctx, path)
	if err != nil {
		return testFile{}, err
	}
	file := testFile{Path: path, Cases: []testCase{}, Mistakes: []problemJSON{}}
	suite, err := scenario.ParseSuite(path, data, env.Kinds...)
	if err == nil {
		err = env.resolveRules(ctx, path, &suite, &file.found)
	}
	if err != nil {
		file.found.Documents = append(file.found.Documents, documents.Document{Name: path, Data: data})
		file.reject(err)
		return file, nil
	}
	file.rules = suite.Rules
	for _, c := range suite.Cases {
		if !wanted.MatchString(c.Name) {
			continue
		}
		c.Lists = lists
		result := runCase(ctx, c, suite.Rules)
		if ctx.Err() != nil {
			return testFile{}, fmt.Errorf("%s: %s: %w", path, c.Name, ctx.Err())
		}
		file.Cases = append(file.Cases, result)
	}
	file.Seconds = time.Since(begun).Seconds()
	return file, nil
}

// reject notes why no case can be run.
func (f *testFile) reject(err error) {
	var problems rules.Problems
	if !errors.As(err, &problems) {
		f.Error = err.Error()
		return
	}
	f.found.Problems = problems
	f.Mistakes = problemsJSON(problems)
}

// resolveRules reads the files that a suite takes its rules from. They are noted
// as what mistakes may stand in.
func (env Env) resolveRules(ctx context.Context, path string, suite *scenario.Suite, found *documents.Collection) error {
	if len(suite.RuleFiles) == 0 {
		return nil
	}
	files := make([]string, len(suite.RuleFiles))
	for i, name := range suite.RuleFiles {
		files[i] = name
		if !filepath.IsAbs(name) {
			files[i] = filepath.Join(filepath.Dir(path), name)
		}
	}
	read, err := documents.Read(ctx, nil, files...)
	if err != nil {
		return fmt.Errorf("the rules cannot be read: %w", err)
	}
	*found = documents.Judge(env.table(), read, documents.Mistakes)
	if len(found.Problems) > 0 {
		return found.Problems
	}
	suite.Rules = found.Rules
	return nil
}

func runCase(ctx context.Context, c scenario.Case, set rules.Set) testCase {
	begun := time.Now()
	failures, err := c.Run(ctx, set)
	result := testCase{
		Name: c.Name, Line: c.Line, Passed: err == nil && len(failures) == 0, Failures: failures,
		Seconds: time.Since(begun).Seconds(),
	}
	if failures == nil {
		result.Failures = []scenario.Failure{}
	}
	result.Error = oneLine(err)
	return result
}

// oneLine returns in one line why a case could not be run: its load never ends, or
// is too large.
func oneLine(err error) string {
	var problems rules.Problems
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &problems):
		return err.Error()
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "; ")
}
