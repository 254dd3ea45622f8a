package command_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
)

// mistaken returns a directory of documents with mistakes, in them and across
// them.
func mistaken(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"shop.yaml": `flow:
  - name: 日本
    resource: orders:create
    limit: -3
    window: 10

  - {resource: 日本, limt: 5, control: thottle}
`,
		"eu/tab.yaml":  "flow:\n\t- resource: a\n",
		"eu/json.json": `{"flow": [{"resource": "a",` + "\t" + `"limit": "1"}]}`,
		"x.yaml":       "flow: [{resource: x, limit: 1}, {resource: y, limit: 1}]\n",
		"y.yaml":       "flow: [{resource: y, limit: 1}]\n",
		"z.yaml":       "flow: [{resource: z, limit: 1}]\n",
	})
}

func TestValidateShowsEveryMistake(t *testing.T) {
	directory := mistaken(t)
	got := user{}.run(t, "validate", "--recursive", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Empty(t, got.err)
	golden(t, "validate.txt", got.out, directory)
}

func TestValidateWarnsOfRulesThatHaveEnded(t *testing.T) {
	directory := tree(t, map[string]string{"faults.yaml": `fault:
  - {name: old, resource: pay, percent: 5, delay: 1s, until: 2001-02-03T04:05:06+01:00}
  - {name: long, resource: pay, percent: 5, delay: 1s, until: 2200-01-01T00:00:00Z}
`})
	got := user{}.run(t, "validate", directory)
	assert.Equal(t, command.ExitDone, got.code)
	assert.Equal(t, "penstock: warning: fault rule \"old\" has ended at 2001-02-03T03:05:06Z and does nothing: remove it\n", got.err)
	got = user{}.run(t, "validate", directory, "--output", "json")
	assert.Contains(t, got.out, `has ended at 2001-02-03T03:05:06Z`)
}

func TestValidateAsJSON(t *testing.T) {
	directory := mistaken(t)
	got := user{}.run(t, "validate", "--recursive", directory, "--output", "json")
	assert.Equal(t, command.ExitNo, got.code)
	var answer struct {
		Documents, Rules int
		Problems         []struct {
			Document, Kind, Rule, Field, Message string
			Line, Column                         int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &answer))
	assert.Equal(t, 6, answer.Documents)
	assert.Equal(t, 3, answer.Rules)
	require.Len(t, answer.Problems, 8)
	p := answer.Problems[2]
	assert.Equal(t, filepath.Join(directory, "shop.yaml"), p.Document)
	assert.Equal(t, []any{4, 12, "flow", "日本", "limit"}, []any{p.Line, p.Column, p.Kind, p.Rule, p.Field})
	assert.Contains(t, p.Message, "is -3: must be from 0")
}

func TestValidateOfValidDocuments(t *testing.T) {
	sound := tree(t, map[string]string{
		"a.yaml": "flow: [{resource: a, limit: 1}]", "b.json": `{"flow": []}`, "notes.txt": "flow: [",
	})
	got := user{types: "flow: [{resource: b, limit: 1}]"}.run(t, "validate", sound, "-")
	assert.Equal(t, answer{"3 documents, 2 rules, no mistakes\n", "", command.ExitDone}, got)

	got = user{}.run(t, "validate", sound, "-o", "json")
	assert.Equal(t, command.ExitDone, got.code)
	assert.JSONEq(t, `{"documents": 2, "rules": 1, "problems": []}`, got.out)
}

func TestValidateOfUnreadableFilesFails(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "nothing"): "no such file",
		"":                                    "a path is empty: is a variable not set?",
		"/dev/zero":                           "/dev/zero: it is longer than 16 MiB: is it the right one?",
		t.TempDir():                           "holds no documents: their names end in .yaml, .yml, .json",
	} {
		got := user{}.run(t, "validate", path)
		assert.Equal(t, command.ExitFailed, got.code)
		assert.Contains(t, got.err, want)
		assert.Empty(t, got.out)
	}
}

// malformed returns the documents that the reader of rules is tested with, and
// where their mistakes are.
func malformed(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob("../../../../rules/testdata/malformed/*.txt")
	require.NoError(t, err)
	unescape := strings.NewReplacer(`\t`, "\t", `\r`, "\r", `\0`, "\x00", `\e`, "\x1b", `\ufeff`, "\ufeff",
		`\u0085`, "\u0085", `\u00a0`, "\u00a0", `\u2028`, "\u2028", `\xff`, "\xff")
	place := regexp.MustCompile(`(?m)^#> (\d+:\d+) `)
	all := make(map[string][]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, cases, _ := strings.Cut(string(text), "\n## ")
		for c := range strings.SplitSeq(cases, "\n## ") {
			_, c, _ = strings.Cut(c, "\n")
			document, mistakes, _ := strings.Cut(c, "#> ")
			if filepath.Base(path) == "encoding.txt" {
				document = unescape.Replace(document)
			}
			for _, found := range place.FindAllStringSubmatch("#> "+mistakes, -1) {
				all[document] = append(all[document], found[1])
			}
		}
	}
	require.Greater(t, len(all), 200)
	return all
}

func TestValidatePointsAtEveryMistakeOfEveryMalformedDocument(t *testing.T) {
	caret := regexp.MustCompile(`(?m)^ +\| .*\^$`)
	place := regexp.MustCompile(`(?m)^stdin:(\d+:\d+): `)
	for document, want := range malformed(t) {
		got := user{types: document}.run(t, "validate", "-")
		assert.Equal(t, command.ExitNo, got.code, document)
		assert.Empty(t, got.err, document)
		var places []string
		for _, found := range place.FindAllStringSubmatch(got.out, -1) {
			places = append(places, found[1])
		}
		assert.Equal(t, want, places, document)
		assert.Len(t, caret.FindAllString(got.out, -1), len(want), document)
	}
}

func TestValidateAcceptsTheSameNameInSeveralDirectories(t *testing.T) {
	directory := tree(t, map[string]string{
		"one/limits.yaml": "flow: [{resource: a, limit: 1}]\n", "two/limits.yaml": "flow: [{resource: b, limit: 2}]\n",
	})
	one, two := filepath.Join(directory, "one"), filepath.Join(directory, "two")
	got := user{}.run(t, "validate", one, two)
	assert.Equal(t, answer{"2 documents, 2 rules, no mistakes\n", "", command.ExitDone}, got)

	for _, arguments := range [][]string{{"diff", one, two}, {"push", one, two, "--yes", "--app=shop"}} {
		got := user{}.run(t, arguments...)
		assert.Equal(t, command.ExitFailed, got.code)
		assert.Contains(t, got.err, `would both be the document "limits.yaml": rename one, or name the directory above both`)
	}
}

// TestValidateReadsTheFilesThatAServiceReads holds the command against the source
// that services read files with.
func TestValidateReadsTheFilesThatAServiceReads(t *testing.T) {
	const sound, broken = "flow: [{resource: NAME, limit: 1}]\n", "flow: ["
	directory := tree(t, map[string]string{
		"a.yaml": sound, "b.yml": strings.Replace(sound, "NAME", "b", 1), "c.json": `{"flow": []}`,
		"notes.txt": broken, ".hidden.yaml": broken, ".git/d.yaml": broken, "A.YAML": broken,
		"eu/e.yaml": broken, "eu/de/f.json": broken, "eu/notes.txt": broken,
	})
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(directory, "elsewhere")))
	source, err := file.New(directory, file.Options{})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Follow(t.Context(), source))
	require.NoError(t, engine.Ready(t.Context()))
	var served []string
	for _, d := range engine.Status().Sources[0].Documents {
		served = append(served, d.Name)
	}
	assert.ElementsMatch(t, []string{"a.yaml", "b.yml", "c.json"}, served)

	got := user{}.run(t, "validate", directory)
	assert.Equal(t, command.ExitDone, got.code, got.out)
	assert.Equal(t, "3 documents, 2 rules, no mistakes\n", got.out)
	assert.Equal(t, strings.ReplaceAll("ignored, as by a service that follows the directory: DIR/A.YAML, DIR/elsewhere, DIR/eu/de/f.json, DIR/eu/e.yaml "+
		"(penstock push takes what is in folders below: --recursive reads it)\n", "DIR", directory), got.err)
	got = user{}.run(t, "validate", directory, "-o", "json")
	assert.Contains(t, got.out, `"ignored": [`)

	require.NoError(t, os.Remove(filepath.Join(directory, "elsewhere")))
	got = user{}.run(t, "validate", "--recursive", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "2 mistakes in 2 of 5 documents\n")
	assert.Empty(t, got.err)
}

func TestValidateOfADirectoryWithSubdirectoriesOnly(t *testing.T) {
	directory := tree(t, map[string]string{"eu/a.yaml": "flow: []"})
	got := user{}.run(t, "validate", directory)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "holds no documents: their names end in .yaml, .yml, .json; below it are "+directory+"/eu/a.yaml (--recursive reads them)")
}

func TestValidateOfADirectoryNamedLikeADocument(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml/b.yaml": "flow: []", "c.yaml": "flow: []"})
	got := user{}.run(t, "validate", directory)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "a.yaml is not a file")
}

func TestValidateForAServerFindsRulesThatItCannotEnforce(t *testing.T) {
	directory := tree(t, map[string]string{
		"a.yaml": "flow: [{resource: a, limit: 1}]\n",
		"b.yaml": "flow: [{resource: b, limit: 1}]\nisolation:\n  - {name: pool, resource: b, limit: 1}\nbreaker: [{resource: b, threshold: 0.5}]\n",
		"c.yaml": "breaker: [{resource: c, threshold: 0.5}]\nisolation: [{resource: c, limit: 1}]\n",
	})
	assert.Equal(t, command.ExitDone, user{}.run(t, "validate", directory).code)
	for _, protocol := range []string{"rls", "ext-authz", "forward-auth"} {
		got := user{}.run(t, "validate", "--for", protocol, directory)
		assert.Equal(t, command.ExitNo, got.code)
		assert.Contains(t, got.out, `b.yaml:3:5: isolation rule "pool": cannot be served: isolation rules count the calls under way`)
		assert.NotContains(t, got.out, "a.yaml:")
		assert.Regexp(t, `(?s)b\.yaml:3:5.*b\.yaml:4:11.*c\.yaml:1:11.*c\.yaml:2:13`, got.out, "in the order of the documents")
	}
	got := user{}.run(t, "validate", "--for", "envoy", directory)
	assert.Equal(t, command.ExitUsage, got.code)
	assert.Contains(t, got.err, "must be rls, rlqs, ext-authz, forward-auth or hold")
}
