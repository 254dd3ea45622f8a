package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
)

func TestSourceConnectsOnceItsPathExists(t *testing.T) {
	for name, create := range map[string]func(t *testing.T, path string){
		"file": func(t *testing.T, path string) { write(t, path, "1") },
		"directory": func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o750))
			write(t, filepath.Join(path, "rules.yaml"), "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rules.yaml")
			follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
				require.Len(t, b.errs, 1)
				require.ErrorContains(t, b.errs[0], "file: stat "+path+": no such file")
				require.ErrorIs(t, b.errs[0], os.ErrNotExist)
				b.poll(2 + 4 + 8 + 8 + 8)
				assert.Len(t, b.errs, 6, "it polls less often")
				assert.Empty(t, b.changes)

				create(t, path)
				b.poll(8)
				b.requireDocuments(1, map[string]string{"rules.yaml": "1"})
				assert.True(t, b.changes[0].Complete)
			})
		})
	}
}

func TestMissingPathKeepsAllDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		single bool
		hide   func(t *testing.T, path string)
		says   string
	}{
		"directory moved away": {false, func(*testing.T, string) {}, "no such file"},
		"file moved away":      {true, func(*testing.T, string) {}, "no such file"},
		"another directory, empty": {false, func(t *testing.T, path string) {
			require.NoError(t, os.Mkdir(path, 0o750))
		}, "is its file system mounted?"},
		"link in a circle": {false, func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(path, path))
		}, "too many levels"},
		"device": {true, func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(os.DevNull, path))
		}, "neither a directory nor a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path, aside := filepath.Join(t.TempDir(), "rules"), filepath.Join(t.TempDir(), "aside")
			document, name := path, "rules"
			if !test.single {
				require.NoError(t, os.Mkdir(path, 0o750))
				document, name = filepath.Join(path, "a.yaml"), "a.yaml"
			}
			write(t, document, "1")
			follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
				b.passCoarseTime()
				require.NoError(t, os.Rename(path, aside))
				test.hide(t, path)
				b.poll(1)
				require.False(t, b.connected)
				require.ErrorContains(t, b.errs[0], test.says)
				b.poll(50)
				require.Len(t, b.changes, 1)
				require.Equal(t, map[string]string{name: "1"}, b.documents)

				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, os.Rename(aside, path))
				b.poll(8)
				b.requireDocuments(2, map[string]string{name: "1"})
				assert.Equal(t, core.Change{}, b.changes[1], "it only says that the source is back")

				write(t, document, "2")
				b.poll(2)
				b.requireDocuments(3, map[string]string{name: "2"})
			})
		})
	}
}

func TestDocumentMissingAfterReconnectIsRemovedAfterTwoPolls(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rules")
	require.NoError(t, os.Mkdir(dir, 0o750))
	a, c := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "c.yaml")
	write(t, a, "1")
	write(t, c, "1")
	follow(t, dir, file.Options{}, func(_ *testing.T, b *fixture) {
		b.passCoarseTime()
		require.NoError(t, os.Rename(dir, dir+"2"))
		b.poll(1)
		remove(t, filepath.Join(dir+"2", "a.yaml"))
		require.NoError(t, os.Rename(dir+"2", dir))
		b.poll(2)
		require.False(t, b.connected)
		require.Len(t, b.changes, 1)
		b.poll(1)
		b.requireDocuments(2, map[string]string{"c.yaml": "1"})
	})
}

func TestTooManyDocumentsAreNotApplied(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), "1")
	}
	write(t, filepath.Join(dir, "no-document"), "1")
	follow(t, dir, file.Options{MaxDocuments: 2}, func(t *testing.T, b *fixture) {
		require.ErrorContains(t, b.errs[0], "MaxDocuments allows, which is 2")
		require.Empty(t, b.changes)

		remove(t, filepath.Join(dir, "0.yaml"))
		b.poll(2)
		b.requireDocuments(1, map[string]string{"1.yaml": "1", "2.yaml": "1"})

		write(t, filepath.Join(dir, "3.yaml"), "1")
		b.poll(1)
		require.False(t, b.connected)
		assert.Equal(t, map[string]string{"1.yaml": "1", "2.yaml": "1"}, b.documents)
	})
}
