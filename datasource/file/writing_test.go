package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/datasource/file"
)

func TestFileIsNotReadWhileItIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, "old")
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		for _, soFar := range []string{"", "n", "ne", "new"} {
			write(t, path, soFar)
			b.poll(1)
			b.requireDocuments(1, map[string]string{"a.yaml": "old"})
		}
		b.poll(1)
		b.requireDocuments(2, map[string]string{"a.yaml": "new"})
	})
}

func TestRecreatedFileIsNeverMissing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, "old")
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		remove(t, path)
		b.poll(1)
		write(t, path, "new")
		b.poll(1)
		b.requireDocuments(1, map[string]string{"a.yaml": "old"})
		b.poll(1)
		b.requireDocuments(2, map[string]string{"a.yaml": "new"})
		assert.Empty(t, b.changes[1].Removed)

		remove(t, path)
		b.poll(1)
		write(t, path, "new")
		b.poll(5)
		b.requireDocuments(2, map[string]string{"a.yaml": "new"})
	})
}

func TestFirstPollWaitsForRecentlyModifiedFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	follow(t, filepath.Join(dir, "later"), file.Options{}, func(t *testing.T, b *fixture) {
		b.poll(1) // the pause is now twice the interval
		write(t, path, "")
		b.touch(path)
		require.NoError(t, os.Symlink(dir, filepath.Join(dir, "later")))
		b.poll(1)
		require.Empty(t, b.changes)
		write(t, path, "1")
		b.poll(1)
		require.Empty(t, b.changes)
		b.poll(1)
		b.requireDocuments(1, map[string]string{"a.yaml": "1"})
		assert.True(t, b.changes[0].Complete)
	})
}

func TestFilesReplacedTogetherAreOneChange(t *testing.T) {
	dir := t.TempDir()
	paths := make([]string, 5)
	old, fresh := map[string]string{}, map[string]string{}
	for i := range paths {
		name := fmt.Sprintf("%d.yaml", i)
		paths[i] = filepath.Join(dir, name)
		old[name], fresh[name] = "old", "new"
		write(t, paths[i], "old")
	}
	follow(t, dir, file.Options{}, func(_ *testing.T, b *fixture) {
		b.passCoarseTime()
		for _, path := range paths {
			replace(t, path, "new")
			b.poll(1)
			b.requireDocuments(1, old)
		}
		b.poll(1)
		b.requireDocuments(2, fresh)
	})
}

// A ConfigMap's volume holds links to files in a hidden directory, which is itself a
// link. An update replaces that link.
func TestKubernetesConfigMapUpdateIsOneChange(t *testing.T) {
	dir := t.TempDir()
	publish := func(version string, documents ...string) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026_"+version), 0o750))
		for _, name := range documents {
			write(t, filepath.Join(dir, "..2026_"+version, name), version)
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
			}
		}
		require.NoError(t, os.Symlink("..2026_"+version, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("1", "a.yaml", "b.yaml", "c.yaml")
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		b.requireDocuments(1, map[string]string{"a.yaml": "1", "b.yaml": "1", "c.yaml": "1"})
		b.passCoarseTime()

		publish("2", "a.yaml", "b.yaml", "d.yaml")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "..2026_1")))
		remove(t, filepath.Join(dir, "c.yaml")) // a dangling link
		b.poll(2)
		b.requireDocuments(2, map[string]string{"a.yaml": "2", "b.yaml": "2", "d.yaml": "2"})
		assert.Equal(t, []string{"c.yaml"}, b.changes[1].Removed)
		assert.Empty(t, b.errs)
	})
}

func TestUnstableFileIsFaultyAndDelaysNoOther(t *testing.T) {
	dir := t.TempDir()
	unstable, a, c := filepath.Join(dir, "unstable.yaml"), filepath.Join(dir, "a.yaml"), filepath.Join(dir, "c.yaml")
	for _, path := range []string{unstable, a, c} {
		write(t, path, "0")
	}
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		b.passCoarseTime()
		round := 0
		poll := func(n int) {
			for range n {
				round++
				write(t, unstable, fmt.Sprint(round))
				b.poll(1)
			}
		}
		write(t, a, "1")
		poll(8)
		b.requireDocuments(1, map[string]string{"unstable.yaml": "0", "a.yaml": "0", "c.yaml": "0"})
		poll(1)
		b.requireDocuments(2, map[string]string{"unstable.yaml": "0", "a.yaml": "1", "c.yaml": "0"})
		require.ErrorContains(t, b.faulty["unstable.yaml"], "keeps changing")

		replace(t, a, "2")
		poll(1)
		replace(t, c, "2")
		poll(1)
		require.Len(t, b.changes, 2, "the others still wait for each other")
		poll(1)
		b.requireDocuments(3, map[string]string{"unstable.yaml": "0", "a.yaml": "2", "c.yaml": "2"})
		poll(20)
		assert.Len(t, b.changes, 3, "it is reported once")

		b.poll(1)
		b.requireDocuments(4, map[string]string{"unstable.yaml": fmt.Sprint(round), "a.yaml": "2", "c.yaml": "2"})
		assert.Empty(t, b.faulty)
	})
}

// Files that change in turn are never all stable at once.
func TestFilesThatChangeInTurnAreAllDelivered(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}
	follow(t, dir, file.Options{}, func(t *testing.T, b *fixture) {
		for i := range 40 {
			write(t, paths[i%2], fmt.Sprint(i))
			b.poll(1)
		}
		assert.Greater(t, len(b.changes), 10)
		assert.Empty(t, b.faulty)

		remove(t, paths[0])
		b.poll(1)
		assert.Equal(t, map[string]string{"a.yaml": "38", "b.yaml": "39"}, b.documents, "a removal still takes two polls")
		b.poll(1)
		assert.Equal(t, map[string]string{"b.yaml": "39"}, b.documents)
	})
}
