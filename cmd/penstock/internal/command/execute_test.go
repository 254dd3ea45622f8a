package command_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

// execute runs penstock as a user would, in an empty environment.
func execute(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errors bytes.Buffer
	env := command.Env{In: strings.NewReader(stdin), Out: &out, Err: &errors, Getenv: func(string) string { return "" }}
	code = command.Run(t.Context(), env, args)
	return out.String(), errors.String(), code
}
