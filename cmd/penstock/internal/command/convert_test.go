package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/rules"
)

// TestConvertSamples converts files as they are found with users of Sentinel. A
// sample NAME.json has beside it what comes of it, NAME.yaml and NAME.txt.
func TestConvertSamples(t *testing.T) {
	samples, err := filepath.Glob("testdata/convert/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, sample := range samples {
		t.Run(filepath.Base(sample), func(t *testing.T) {
			golden := func(extension string) string {
				data, err := os.ReadFile(strings.TrimSuffix(sample, ".json") + extension)
				require.NoError(t, err)
				return string(data)
			}
			stdout, stderr, code := execute(t, "", "convert", "--partial", sample)
			assert.Equal(t, command.ExitDone, code)
			assert.Equal(t, golden(".yaml"), stdout)
			assert.Equal(t, golden(".txt"), stderr)
			_, err := rules.Parse(sample, []byte(stdout))
			assert.NoError(t, err)
		})
	}
}

// TestConvertSamplesOfOthers converts files of other programs than Sentinel. A sample has
// beside it what comes of it, with the ending .want, and what is said of it, with .txt.
func TestConvertSamplesOfOthers(t *testing.T) {
	const dir = "testdata/convert/others/"
	for _, sample := range []string{"envoy.yaml", "nginx.conf", "application.yml"} {
		t.Run(sample, func(t *testing.T) {
			golden := func(extension string) string {
				data, err := os.ReadFile(dir + sample + extension)
				require.NoError(t, err)
				return string(data)
			}
			stdout, stderr, code := execute(t, "", "convert", "--partial", dir+sample)
			assert.Equal(t, command.ExitDone, code)
			assert.Equal(t, golden(".want"), stdout)
			assert.Equal(t, golden(".txt"), stderr)
			_, err := rules.Parse(sample, []byte(stdout))
			assert.NoError(t, err)
			_, _, code = execute(t, "", "convert", dir+sample)
			assert.Equal(t, command.ExitNo, code, "something is left out")
		})
	}
}

func TestConvertReadsStandardInput(t *testing.T) {
	for _, args := range [][]string{{"convert"}, {"convert", "-"}} {
		stdout, stderr, code := execute(t, `[{"resource": "a", "count": 3}]`, args...)
		assert.Equal(t, command.ExitDone, code)
		assert.Empty(t, stderr)
		assert.Equal(t, "# Rules of Sentinel, converted by penstock convert from\n#   stdin\n\n"+
			"flow:\n  - resource: a\n    limit: 3\n    buckets: 2\n", stdout)
	}
}

func TestConvertMakesOneDocumentOfSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	one, two, document := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json"), filepath.Join(dir, "rules.yaml")
	for _, path := range []string{one, two} {
		require.NoError(t, os.WriteFile(path, []byte(`[{"resource": "a", "threshold": 3}]`), 0o600))
	}
	stdout, stderr, code := execute(t, "", "convert", one, two, "-f", document)
	require.Equal(t, command.ExitDone, code, stderr)
	assert.Empty(t, stdout)
	stdout, _, code = execute(t, "", "validate", document)
	assert.Equal(t, command.ExitDone, code)
	assert.Contains(t, stdout, "1 document, 2 rules, no mistakes")
}

func TestConvertWritesNothingWhenSomethingIsLeftOut(t *testing.T) {
	document := filepath.Join(t.TempDir(), "rules.yaml")
	for name, c := range map[string]struct {
		file, stderr string
		args         []string
	}{
		"a rule": {
			file:   `[{"resource": "a", "count": 3}, {"resource": "b", "count": 3, "clusterMode": true}]`,
			stderr: "stdin:1:78: rule on \"b\": left out: it is a limit of the whole cluster",
		},
		"a field": {
			file:   `[{"resource": "a", "count": 3, "warmup": 3}]`,
			stderr: "stdin:1:32: rule on \"a\": left out: the field \"warmup\"",
		},
		"a file": {
			file:   "[{\n,",
			stderr: "stdin:2:1: unreadable: the file cannot be read as JSON: invalid character ','",
			args:   []string{"--partial"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := execute(t, c.file, append([]string{"convert", "--file", document}, c.args...)...)
			assert.Equal(t, command.ExitNo, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, c.stderr)
			assert.Contains(t, stderr, "penstock: nothing was written")
			assert.NoFileExists(t, document)
		})
	}
}

func TestConvertOfADocumentThatGetsTooLong(t *testing.T) {
	rule := `{"resource": "` + strings.Repeat("x", 1000) + `", "count": 3}`
	_, stderr, code := execute(t, "["+strings.TrimSuffix(strings.Repeat(rule+",", 600), ",")+"]", "convert")
	assert.Equal(t, command.ExitNo, code)
	assert.Contains(t, stderr, "make several sets of it")
}

func TestConvertOfFilesThatCannotBeReadOrWritten(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "file")
	_, stderr, code := execute(t, "", "convert", missing)
	assert.Equal(t, command.ExitFailed, code)
	assert.Contains(t, stderr, "no such file")
	_, stderr, code = execute(t, "[]", "convert", "-f", missing)
	assert.Equal(t, command.ExitFailed, code)
	assert.Contains(t, stderr, "no such file")
}

func TestConvertTakesNoFormatForTheNameOfAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, format := range []string{"json", "JSON", "yaml", "text", "svg"} {
		stdout, stderr, code := execute(t, "[]", "convert", "-o", format)
		assert.Equal(t, command.ExitUsage, code)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "to write it to a file of that name say --file "+format)
		assert.NoFileExists(t, format)
	}
	_, stderr, code := execute(t, "[]", "convert", "--file", "json")
	assert.Equal(t, command.ExitDone, code, stderr)
	assert.FileExists(t, "json")

	// As it was called before.
	_, stderr, code = execute(t, "[]", "convert", "--output", "rules.yaml")
	assert.Equal(t, command.ExitDone, code)
	assert.Contains(t, stderr, "--file names the file to write to")
	assert.FileExists(t, "rules.yaml")
	_, stderr, code = execute(t, "[]", "convert", "--output", "a.yaml", "--file", "b.yaml")
	assert.Equal(t, command.ExitUsage, code)
	assert.Contains(t, stderr, "leave --output out")
}
