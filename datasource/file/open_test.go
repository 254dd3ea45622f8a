//go:build unix

package file

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pipe may replace a file between stat and open.
func TestOpeningAPipeDoesNotBlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	assert.Contains(t, ruleDocuments().read(path).fault, path+" is no regular file (p")

	source, err := newSource(path, Options{}, ruleDocuments())
	require.NoError(t, err)
	_, err = source.list()
	require.ErrorContains(t, err, path)
}
