package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asCommand is the variable of the environment that makes the binary of the test penstock itself.
const asCommand = "PENSTOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// penstock runs the command, and returns what it writes and its exit code.
func penstock(t *testing.T, directory string, args ...string) (out string, code int) {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Dir = append(os.Environ(), asCommand+"=1"), directory
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

func TestExampleShowsEveryField(t *testing.T) {
	out, code := penstock(t, "", "example", "quota")
	assert.Zero(t, code)
	assert.Equal(t, `# A document of rules with every field that they may have. One that is left out
# has its default. A document that has no rules says so: "flow: []".

quota:
  # at most 500 orders a day for each user
  - name: orders-a-day             # identifies the rule in errors, logs and metrics, and over reloads; default: the resource, or the pattern
    resource: orders:create        # the exact name of the guarded resource; default: match instead
    param: user                    # the attribute whose values have a quota each; default: user
    perDay: 500                    # tokens from midnight to midnight, UTC; 0 blocks all; required

  # what would happen with one quota for all reports, of the calls of one caller?
  - match: reports:*               # instead of a resource: a pattern of names, a glob or ~ and a regular expression; default: resource instead
    perResource: false             # false: all resources that match share one limit; default: true
    param: tenant
    perDay: 10000
    origin: batch                  # only calls of this caller; other: of callers that no rule names; default: all calls
    shadow: true                   # decide and count, but let every call through; default: false
`, out)
}

func TestValidateAndTestKnowQuotas(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"rules.yaml": "quota: [{name: a-day, resource: report, perDay: 2}]\n",
		"wrong.yaml": "quota: [{resource: report, perDay: -1, limit: 2}]\n",
		"report_test.yaml": `rules: rules.yaml
cases:
- name: each user has two reports a day
  load: [report 1/s attrs=user:ann, report at 3 attrs=user:bob]
  duration: 4s
  expect: {passed: 1 1 0 1, blockedBy: {a-day: 2}}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600))
	}
	out, code := penstock(t, directory, "validate", "rules.yaml")
	assert.Zero(t, code)
	assert.Equal(t, "1 document, 1 rule, no mistakes\n", out)
	out, code = penstock(t, directory, "validate", "wrong.yaml")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, `quota rule "report": perDay is -1: must be from 0 to 2147483647`)
	assert.Contains(t, out, `quota rule "report": unknown field "limit"`)
	out, code = penstock(t, directory, "test", "report_test.yaml")
	assert.Zero(t, code, out)
}
