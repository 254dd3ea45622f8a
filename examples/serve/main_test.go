package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test program is also the servers that the show starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleReplica {
		if err := program(context.Background(), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// How much passes depends on how busy the machine is.
func TestShowEndsByItself(t *testing.T) {
	for _, path := range []string{os.Getenv("PATH"), t.TempDir()} { // without a server program in the end
		t.Setenv("PATH", path)
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, 50*time.Millisecond))
		t.Log(out.String())
		assert.Contains(t, out.String(), "bob    OK         left for all: 6, for the user: 2")
		assert.Contains(t, out.String(), "replica 2 is killed")
		assert.Contains(t, out.String(), "of possible")
	}
}
