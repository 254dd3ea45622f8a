package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program of docs/fleet.md, run twice at once for less time than there.
func TestProgramOfThePageSharesItsLimit(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(page), "```go\npackage main\n")
	require.True(t, found)
	code, _, _ = strings.Cut(code, "```")
	server, err := startServer(t.Context())
	require.NoError(t, err)
	defer server.stop()
	for before, after := range map[string]string{"127.0.0.1:6379": server.address(), "10*time.Second": "2*time.Second"} {
		require.Equal(t, 1, strings.Count(code, before), before)
		code = strings.ReplaceAll(code, before, after)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source, []byte("package main\n"+code), 0o600))
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput()
	require.NoError(t, err, string(output))

	passed := make([]int, 2)
	var programs sync.WaitGroup
	for i := range passed {
		programs.Go(func() {
			output, err := exec.CommandContext(t.Context(), program).Output()
			assert.NoError(t, err)
			count, _, _ := strings.Cut(string(output), " calls passed")
			passed[i], err = strconv.Atoi(count)
			assert.NoError(t, err, string(output))
		})
	}
	programs.Wait()
	t.Logf("passed %v in 2 s, of a limit of 100 per second", passed)
	assert.Positive(t, passed[0]+passed[1])
	// On a busy machine one may begin when the other one has ended.
	assert.LessOrEqual(t, passed[0], int(2*limit+tolerance*limit))
	assert.LessOrEqual(t, passed[1], int(2*limit+tolerance*limit))
}
