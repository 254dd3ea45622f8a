package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what the tables are into testdata")

func TestTables(t *testing.T) {
	document := filepath.Join(t.TempDir(), "performance.md")
	frame := "# Performance\n\n<!-- bench:speed -->\nold\n<!-- /bench:speed -->\n\n## Growth\n\n" +
		"<!-- bench:growth -->\n<!-- /bench:growth -->\n\n<!-- bench:adapters -->\n<!-- /bench:adapters -->\n\nThe end.\n"
	require.NoError(t, os.WriteFile(document, []byte(frame), 0o600))

	require.NoError(t, run([]string{"testdata/results.txt"}, document))

	got, err := os.ReadFile(document)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile("testdata/performance.md", got, 0o600))
	}
	want, err := os.ReadFile("testdata/performance.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}

func TestFilesWithoutValidResultsAreErrors(t *testing.T) {
	tests := map[string]struct{ results, problem string }{
		"empty":                 {"PASS\n", "no results in"},
		"names of another kind": {"BenchmarkA/b \t 1 \t 2 ns/op\n", `"A/b" is not named scenario/subject/variant`},
		"cut off":               {"BenchmarkA/b/c \t 1 \t 2\n", "results.txt:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "results.txt")
			require.NoError(t, os.WriteFile(file, []byte(test.results), 0o600))
			require.ErrorContains(t, run([]string{file}, ""), test.problem)
		})
	}
}
