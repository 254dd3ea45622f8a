package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A short run keeps the soak test itself working.
func TestShortSoakHasNoFindings(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, 2*time.Second, 64, 1), out.String())
	assert.Contains(t, out.String(), "crowd:* beyond")
	assert.Contains(t, out.String(), "0 findings")
	assert.NotContains(t, out.String(), "\n0 calls")
}

func TestInterruptedSoakEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	require.NoError(t, run(ctx, &out, time.Hour, 4, 1), out.String()) // or it takes longer than tests may
}
