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
	follow(t, dir, file.Options{}, func(t *testing.T, b *bench) {
		b.settle()
		for _, soFar := range []string{"", "n", "ne", "new"} {
			write(t, path, soFar)
			b.look(1)
			b.holds(1, map[string]string{"a.yaml": "old"})
		}
		b.look(1)
		b.holds(2, map[string]string{"a.yaml": "new"})
	})
}

func TestFileThatIsDeletedAndWrittenAnewIsNeverMissing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	write(t, path, "old")
	follow(t, dir, file.Options{}, func(t *testing.T, b *bench) {
		b.settle()
		remove(t, path)
		b.look(1)
		write(t, path, "new")
		b.look(1)
		b.holds(1, map[string]string{"a.yaml": "old"})
		b.look(1)
		b.holds(2, map[string]string{"a.yaml": "new"})
		assert.Empty(t, b.changes[1].Removed)

		remove(t, path)
		b.look(1)
		write(t, path, "new")
		b.look(5)
		b.holds(2, map[string]string{"a.yaml": "new"})
	})
}

func TestFirstLookWaitsForFilesThatMayJustBeBeingWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	follow(t, filepath.Join(dir, "later"), file.Options{}, func(t *testing.T, b *bench) {
		b.look(1) // the pause is twice the interval
		write(t, path, "")
		b.now(path)
		require.NoError(t, os.Symlink(dir, filepath.Join(dir, "later")))
		b.look(1)
		require.Empty(t, b.changes)
		write(t, path, "1")
		b.look(1)
		require.Empty(t, b.changes)
		b.look(1)
		b.holds(1, map[string]string{"a.yaml": "1"})
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
	follow(t, dir, file.Options{}, func(_ *testing.T, b *bench) {
		b.settle()
		for _, path := range paths {
			replace(t, path, "new")
			b.look(1)
			b.holds(1, old)
		}
		b.look(1)
		b.holds(2, fresh)
	})
}

// A ConfigMap's volume holds links to files in a hidden directory, which itself
// is behind a link. That one is replaced.
func TestKubernetesConfigMapIsSwappedWhole(t *testing.T) {
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
	follow(t, dir, file.Options{}, func(t *testing.T, b *bench) {
		b.holds(1, map[string]string{"a.yaml": "1", "b.yaml": "1", "c.yaml": "1"})
		b.settle()

		publish("2", "a.yaml", "b.yaml", "d.yaml")
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "..2026_1")))
		remove(t, filepath.Join(dir, "c.yaml")) // which led nowhere
		b.look(2)
		b.holds(2, map[string]string{"a.yaml": "2", "b.yaml": "2", "d.yaml": "2"})
		assert.Equal(t, []string{"c.yaml"}, b.changes[1].Removed)
		assert.Empty(t, b.errs)
	})
}

func TestFileThatNeverComesToRestIsReportedAndHoldsUpNothing(t *testing.T) {
	dir := t.TempDir()
	restless, a, c := filepath.Join(dir, "restless.yaml"), filepath.Join(dir, "a.yaml"), filepath.Join(dir, "c.yaml")
	for _, path := range []string{restless, a, c} {
		write(t, path, "0")
	}
	follow(t, dir, file.Options{}, func(t *testing.T, b *bench) {
		b.settle()
		round := 0
		look := func(n int) {
			for range n {
				round++
				write(t, restless, fmt.Sprint(round))
				b.look(1)
			}
		}
		write(t, a, "1")
		look(8)
		b.holds(1, map[string]string{"restless.yaml": "0", "a.yaml": "0", "c.yaml": "0"})
		look(1)
		b.holds(2, map[string]string{"restless.yaml": "0", "a.yaml": "1", "c.yaml": "0"})
		require.ErrorContains(t, b.faulty["restless.yaml"], "keeps changing")

		replace(t, a, "2")
		look(1)
		replace(t, c, "2")
		look(1)
		require.Len(t, b.changes, 2, "the others still wait for each other")
		look(1)
		b.holds(3, map[string]string{"restless.yaml": "0", "a.yaml": "2", "c.yaml": "2"})
		look(20)
		assert.Len(t, b.changes, 3, "it is reported once")

		b.look(1)
		b.holds(4, map[string]string{"restless.yaml": fmt.Sprint(round), "a.yaml": "2", "c.yaml": "2"})
		assert.Empty(t, b.faulty)
	})
}

// Files that change in turn never are at rest all at once.
func TestFilesThatChangeInTurnAreDelivered(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}
	follow(t, dir, file.Options{}, func(t *testing.T, b *bench) {
		for i := range 40 {
			write(t, paths[i%2], fmt.Sprint(i))
			b.look(1)
		}
		assert.Greater(t, len(b.changes), 10)
		assert.Empty(t, b.faulty)

		remove(t, paths[0])
		b.look(1)
		assert.Equal(t, map[string]string{"a.yaml": "38", "b.yaml": "39"}, b.documents, "to be gone takes two looks even now")
		b.look(1)
		assert.Equal(t, map[string]string{"b.yaml": "39"}, b.documents)
	})
}
