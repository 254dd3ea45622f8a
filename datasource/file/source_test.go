package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/rules"
)

func TestDirectoryIsDeliveredAtOnceAsOneChange(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yml", "a.yaml", "c.json"} {
		write(t, filepath.Join(dir, name), "in "+name)
	}
	for _, name := range []string{".hidden.yaml", "..data.yaml", "notes.txt", "yaml", "a.yaml~", "a.yaml.swp", "A.YAML"} {
		write(t, filepath.Join(dir, name), "ignored")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "directory"), 0o750))
	write(t, filepath.Join(dir, "directory", "deeper.yaml"), "ignored")
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		assert.Equal(t, []core.Change{{Complete: true, Documents: []core.Document{
			{Name: "a.yaml", Data: []byte("in a.yaml")},
			{Name: "b.yml", Data: []byte("in b.yml")},
			{Name: "c.json", Data: []byte("in c.json")},
		}}}, b.changes)
		b.passCoarseTime()
		assert.Len(t, b.changes, 1, "what does not change is not delivered again")
	})
}

func TestEmptyDirectoryIsComplete(t *testing.T) {
	follow(t, t.TempDir(), file.Options{}, func(t *testing.T, b *fixture) {
		assert.Equal(t, []core.Change{{Complete: true}}, b.changes)
	})
}

func TestSingleFileIsADocumentWithAnyName(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".rules")
	write(t, path, "1")
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		b.requireDocuments(1, map[string]string{".rules": "1"})
		replace(t, path, "2")
		b.poll(2)
		b.requireDocuments(2, map[string]string{".rules": "2"})
	})
}

func TestDocumentsAreAddedChangedAndRemoved(t *testing.T) {
	dir := t.TempDir()
	a, c := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "c.yaml")
	write(t, a, "1")
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		for i, step := range []struct {
			do   func()
			want map[string]string
		}{
			{func() { replace(t, a, "2") }, map[string]string{"a.yaml": "2"}},
			{func() { write(t, c, "1") }, map[string]string{"a.yaml": "2", "c.yaml": "1"}},
			{func() { write(t, a, "") }, map[string]string{"a.yaml": "", "c.yaml": "1"}},
			{func() { remove(t, a) }, map[string]string{"c.yaml": "1"}},
			{func() { replace(t, a, "3"); remove(t, c) }, map[string]string{"a.yaml": "3"}},
			{func() { remove(t, a) }, map[string]string{}},
		} {
			step.do()
			b.poll(1)
			require.Len(t, b.changes, i+1, "step %d: nothing is believed that was seen once", i)
			b.poll(1)
			b.requireDocuments(i+2, step.want)
			assert.False(t, b.changes[i+1].Complete)
		}
	})
}

func TestTouchedFileIsNotAChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		for range 5 {
			b.passCoarseTime()
			b.touch(path)
			b.poll(5)
			replace(t, path, "1")
		}
		b.requireDocuments(1, map[string]string{"a.yaml": "1"})
	})
}

// Times in a file system may have a resolution of two seconds: a file that changes
// again in that time, with the same length, looks unchanged.
func TestChangeWithSameTimeAndLengthIsSeenWithinTwoSeconds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	same := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, same, same))
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		b.poll(5)
		write(t, path, "2")
		require.NoError(t, os.Chtimes(path, same, same))
		b.poll(2)
		b.requireDocuments(2, map[string]string{"a.yaml": "2"})
	})
}

func TestChangeOfLengthIsSeenWithTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	same := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, same, same))
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		write(t, path, "12")
		require.NoError(t, os.Chtimes(path, same, same))
		b.poll(2)
		b.requireDocuments(2, map[string]string{"a.yaml": "12"})
	})
}

func TestReplacementIsSeenWithTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	other := filepath.Join(filepath.Dir(path), "b")
	same := time.Now().Add(-time.Hour)
	write(t, path, "1")
	write(t, other, "2")
	require.NoError(t, os.Chtimes(path, same, same))
	require.NoError(t, os.Chtimes(other, same, same))
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		require.NoError(t, os.Rename(other, path))
		b.poll(2)
		b.requireDocuments(2, map[string]string{"a.yaml": "2"})
	})
}

func TestUnreadableDocumentIsFaulty(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		says  string
	}{
		"too long": {func(t *testing.T, path string) {
			write(t, path, strings.Repeat("x", rules.MaxDocumentSize+1))
		}, "more than 1048576 bytes"},
		"far too long": {func(t *testing.T, path string) {
			require.NoError(t, os.Truncate(path, 1<<40))
		}, "more than 1048576 bytes"},
		"link in a circle": {func(t *testing.T, path string) {
			remove(t, path)
			require.NoError(t, os.Symlink(filepath.Base(path), path))
		}, "too many levels"},
		"link to nothing": {func(t *testing.T, path string) {
			remove(t, path)
			require.NoError(t, os.Symlink("nothing", path))
		}, "no such file"},
		"directory": {func(t *testing.T, path string) {
			remove(t, path)
			require.NoError(t, os.Mkdir(path, 0o750))
		}, "is no regular file (d"},
		"device": {func(t *testing.T, path string) {
			remove(t, path)
			require.NoError(t, os.Symlink(os.DevNull, path))
		}, "is no regular file (D"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.yaml")
			write(t, path, "1")
			follow(t, filepath.Dir(path), file.Options{}, func(t *testing.T, b *fixture) {
				b.passCoarseTime()
				test.spoil(t, path)
				b.poll(2)
				b.requireDocuments(2, map[string]string{"a.yaml": "1"})
				require.ErrorContains(t, b.faulty["a.yaml"], test.says)
				require.ErrorContains(t, b.faulty["a.yaml"], "file: ")
				b.passCoarseTime()
				assert.Len(t, b.changes, 2, "it is reported once")

				remove(t, path)
				replace(t, path, "2")
				b.poll(2)
				b.requireDocuments(3, map[string]string{"a.yaml": "2"})
				assert.Empty(t, b.faulty)
			})
		})
	}
}

func TestDocumentIsReadOnceItsPermissionIsGranted(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	path := filepath.Join(t.TempDir(), "a.yaml")
	write(t, path, "1")
	require.NoError(t, os.Chmod(path, 0))
	follow(t, path, file.Options{}, func(t *testing.T, b *fixture) {
		require.ErrorContains(t, b.faulty["a.yaml"], "permission denied")
		b.passCoarseTime()
		require.NoError(t, os.Chmod(path, 0o600))
		b.poll(2)
		b.requireDocuments(2, map[string]string{"a.yaml": "1"})
	})
}

func TestLongestDocumentIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	longest := strings.Repeat("x", rules.MaxDocumentSize)
	write(t, path, longest)
	follow(t, path, file.Options{}, func(_ *testing.T, b *fixture) {
		b.requireDocuments(1, map[string]string{"a.yaml": longest})
	})
}

func TestNameIsTheAbsolutePath(t *testing.T) {
	source, err := file.New("/etc/shop//rules/", file.Options{})
	require.NoError(t, err)
	assert.Equal(t, "file:/etc/shop/rules", source.Name())

	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	source, err = file.New("rules", file.Options{})
	require.NoError(t, err)
	assert.Equal(t, "file:"+filepath.Join(here, "rules"), source.Name())
}

func TestInvalidArgumentsAreErrors(t *testing.T) {
	for says, do := range map[string]func() (core.Source, error){
		"path is empty":            func() (core.Source, error) { return file.New("", file.Options{}) },
		"Interval is negative":     func() (core.Source, error) { return file.New("a", file.Options{Interval: -1}) },
		"MaxDocuments is negative": func() (core.Source, error) { return file.New("a", file.Options{MaxDocuments: -1}) },
	} {
		source, err := do()
		require.ErrorContains(t, err, says)
		assert.Nil(t, source)
	}
}
