//go:build unix

package file_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/file"
)

func TestChangeIsSeenByChangeTimeAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	same := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, same, same))
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		changedLater(t, path, func() error {
			return errors.Join(os.WriteFile(path, []byte("2"), 0o600), os.Chtimes(path, same, same))
		})
		b.poll(2)
		b.requireDocuments(2, map[string]string{"a.yaml": "2"})
	})
}

// changedLater repeats a change of a file until the file system shows another time
// for it: its times may be as coarse as its clock ticks.
func changedLater(t *testing.T, path string, do func() error) {
	t.Helper()
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		assert.NoError(t, do())
		after, err := os.Stat(path)
		return assert.NoError(t, err) && file.Changed(after) != file.Changed(before)
	}, 2*time.Minute, time.Millisecond)
}

func TestPipeOrSocketInPlaceOfADocumentBlocksNothing(t *testing.T) {
	for name, put := range map[string]func(t *testing.T, path string){
		"pipe": func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
		"link to a pipe": func(t *testing.T, path string) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			require.NoError(t, os.Symlink(pipe, path))
		},
		"socket": func(t *testing.T, path string) {
			listener, err := net.Listen("unix", path)
			require.NoError(t, err)
			t.Cleanup(func() { _ = listener.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "penstock") // names of sockets are short
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			a, other := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
			write(t, a, "1")
			write(t, other, "1")
			follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
				b.passCoarseTime()
				remove(t, a)
				put(t, a)
				replace(t, other, "2")
				b.poll(2)
				b.requireDocuments(2, map[string]string{"a.yaml": "1", "b.yaml": "2"})
				require.ErrorContains(t, b.faulty["a.yaml"], "file: "+a+" is no regular file (")
				require.ErrorContains(t, b.faulty["a.yaml"], "): put a file there or remove it")

				remove(t, a)
				write(t, a, "3")
				b.poll(2)
				b.requireDocuments(3, map[string]string{"a.yaml": "3", "b.yaml": "2"})
				assert.Empty(t, b.faulty)
			})
		})
	}
}

func TestPipeInPlaceOfTheOnlyDocumentBlocksNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	write(t, path, "1")
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		remove(t, path)
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		b.poll(1)
		require.False(t, b.connected)
		require.ErrorContains(t, b.errs[0], path+" is neither a directory nor a regular file (p")
		assert.Equal(t, map[string]string{"rules": "1"}, b.documents)
	})
}
