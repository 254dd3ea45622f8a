package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
)

func TestReadReturnsCompleteFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	for _, size := range []int{0, 1, files.Most} {
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		data, err := files.Read(t.Context(), path)
		require.NoError(t, err)
		assert.Len(t, data, size)
	}
}

func TestReadOfTooLongInputIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, files.Most+1))
	_, err := files.Read(t.Context(), path)
	require.EqualError(t, err, path+": it is longer than 16 MiB: is it the right one?")
	_, err = files.ReadInput(t.Context(), endless{})
	require.EqualError(t, err, "reading standard input: it is longer than 16 MiB: is it the right one?")
}

// endless is an infinite reader, such as /dev/zero.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestReadErrorsNameTheFile(t *testing.T) {
	_, err := files.Read(t.Context(), filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = files.Read(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "is a directory")
	_, err = files.ReadInput(t.Context(), iotest.ErrReader(errors.New("gone")))
	require.EqualError(t, err, "reading standard input: gone")
	data, err := files.ReadInput(t.Context(), strings.NewReader("x"))
	require.NoError(t, err)
	assert.Equal(t, "x", string(data))
}
