package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/rules"
)

// files returns all files below a directory, hidden ones too.
func files(t *testing.T, directory string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	system := os.DirFS(directory)
	require.NoError(t, fs.WalkDir(system, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			data, err := fs.ReadFile(system, name)
			all[name] = string(data)
			return err
		}
		return err
	}))
	return all
}

// some returns documents given as name, data, and so on.
func some(pairs ...string) []documents.Document { return judge(pairs...).Documents }

func TestSaveCreatesTheDirectoryAndTheFiles(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "new", "rules")
	changes, err := documents.Save(t.Context(), directory, some("a.yaml", "1\r\n\x00", "eu/de/b.json", "2", "README", "3"), false)
	require.NoError(t, err)
	assert.Len(t, changes, 3)
	assert.Equal(t, map[string]string{"a.yaml": "1\r\n\x00", "eu/de/b.json": "2", "README": "3"}, files(t, directory))
}

func TestSaveAgainWritesNothing(t *testing.T) {
	directory := tree(t, map[string]string{"a.yaml": "1", "notes.md": "mine"})
	changes, err := documents.Save(t.Context(), directory, some("a.yaml", "1"), false)
	require.NoError(t, err)
	assert.Empty(t, changes)
}

func TestSaveLosesNothingWithoutOverwrite(t *testing.T) {
	before := map[string]string{"a.yaml": "mine", "b.yaml": "2", "eu/other.yml": "3", "LIMITS": "4", "notes.md": "5", ".x.yaml": "6"}
	directory := tree(t, before)
	wanted := some("a.yaml", "1", "b.yaml", "2", "c.yaml", "3", "LIMITS", "new")

	_, err := documents.Save(t.Context(), directory, wanted, false)
	var unsaved *documents.UnsavedError
	require.ErrorAs(t, err, &unsaved)
	assert.Equal(t, []string{"LIMITS", "a.yaml"}, unsaved.Changed)
	assert.Equal(t, []string{"eu/other.yml"}, unsaved.Others)
	assert.Equal(t, before, files(t, directory))

	changes, err := documents.Save(t.Context(), directory, wanted, true)
	require.NoError(t, err)
	assert.Equal(t, []documents.DocumentChange{
		{Name: "LIMITS", Change: rules.Changed},
		{Name: "a.yaml", Change: rules.Changed},
		{Name: "c.yaml", Change: rules.Added},
		{Name: "eu/other.yml", Change: rules.Removed},
	}, changes)
	assert.Equal(t, map[string]string{
		"a.yaml": "1", "b.yaml": "2", "c.yaml": "3", "LIMITS": "new", "notes.md": "5", ".x.yaml": "6",
	}, files(t, directory))
}

func TestSaveNeverWritesOutsideTheDirectory(t *testing.T) {
	for _, name := range []string{"../x.yaml", "/etc/x.yaml", "a/../../x.yaml", "a/../x.yaml", "./x.yaml", "a//x.yaml", "", ".", "..", "a/"} {
		parent := t.TempDir()
		_, err := documents.Save(t.Context(), filepath.Join(parent, "rules"), some("good.yaml", "1", name, "2"), true)
		require.ErrorContains(t, err, "nothing was written", "%q", name)
		assert.Empty(t, files(t, parent), "%q", name)
	}
}

func TestSaveDoesNotFollowLinksOutOfTheDirectory(t *testing.T) {
	outside := tree(t, map[string]string{"x.yaml": "theirs"})
	directory := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(directory, ".out")))
	_, err := documents.Save(t.Context(), directory, some(".out/x.yaml", "mine", ".out/y.yaml", "mine"), true)
	require.Error(t, err)
	assert.Equal(t, map[string]string{"x.yaml": "theirs"}, files(t, outside))

	require.NoError(t, os.Symlink(filepath.Join(outside, "x.yaml"), filepath.Join(directory, "x.yaml")))
	_, err = documents.Save(t.Context(), directory, some("x.yaml", "mine"), true)
	require.NoError(t, err, "the link itself is replaced")
	assert.Equal(t, map[string]string{"x.yaml": "theirs"}, files(t, outside))
	data, err := os.ReadFile(filepath.Join(directory, "x.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "mine", string(data))
}

func TestSaveToAFileIsAnError(t *testing.T) {
	directory := tree(t, map[string]string{"a": "1"})
	_, err := documents.Save(t.Context(), filepath.Join(directory, "a"), some("x.yaml", "1"), true)
	require.Error(t, err)
	_, err = documents.Save(t.Context(), directory, some("a/x.yaml", "1"), true)
	require.Error(t, err)
	assert.Equal(t, map[string]string{"a": "1"}, files(t, directory))
}
