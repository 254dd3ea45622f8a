package penstock_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const consumer = `package main

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock"
)

func main() {
	guard, err := penstock.Entry(context.Background(), "r")
	fmt.Println(err)
	guard.Exit()
}
`

// A program that imports the root package gets the YAML parser with it, and
// nothing else.
func TestAConsumerGetsNoFrameworks(t *testing.T) {
	if testing.Short() {
		t.Skip("asks the module proxy")
	}
	root, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(consumer), 0o600))
	run := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "go %s: %s", strings.Join(args, " "), output)
		return string(output)
	}
	run("mod", "init", "example.com/consumer")
	run("mod", "edit", "-replace", module+"="+root, "-require", module+"@v0.0.0")
	run("mod", "tidy")

	assert.Equal(t, "<nil>\n", run("run", "."))
	var required []string
	for line := range strings.Lines(run("list", "-m", "-f", "{{.Path}}", "all")) {
		required = append(required, strings.TrimSpace(line))
	}
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	for _, framework := range []string{"gin", "grpc", "etcd", "prometheus"} {
		assert.NotContains(t, string(content), framework+" ")
		assert.NotContains(t, strings.Join(required, "\n"), "/"+framework)
	}
	assert.Equal(t, 2, strings.Count(string(content), " v"), "requirements: Penstock and the YAML parser\n%s", content)
}
