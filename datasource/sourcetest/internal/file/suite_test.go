package file_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSourceKeepsThePromisesOfSources(t *testing.T) {
	lacks := map[sourcetest.Feature]string{
		sourcetest.Slashes:     "documents are files of one directory",
		sourcetest.Cuts:        "files are not read over a network",
		sourcetest.Credentials: "files have permissions instead",
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		lacks[sourcetest.AnyName] = "the file systems of " + runtime.GOOS + " do not have all names"
	}
	if _, ok := any(&directory{}).(sourcetest.Hider); !ok {
		lacks[sourcetest.HiddenChanges] = "a change that the file system of " + runtime.GOOS + " does not tell of cannot be made by a test"
	}
	sourcetest.Run(t, sourcetest.Harness{
		NewStore: func(t *testing.T) sourcetest.Store {
			t.Helper()
			d := &directory{t: t, path: filepath.Join(t.TempDir(), "rules")}
			d.at = d.path
			require.NoError(t, os.Mkdir(d.path, 0o750))
			return d
		},
		Open: func(t *testing.T, store sourcetest.Store, _ sourcetest.Options) core.Source {
			t.Helper()
			source, err := file.New(store.(*directory).path, file.Options{
				Interval: 5 * time.Millisecond, CompareInterval: 500 * time.Millisecond,
			})
			require.NoError(t, err)
			return source
		},
		Documents: 2500,
		Lacks:     lacks,
	})
}

// directory is a store. While it is stopped, it has been moved away.
type directory struct {
	t    *testing.T
	path string // where the source looks for it
	at   string // where it is
}

// Put writes another file and renames it, so that nobody reads half of it.
func (d *directory) Put(name, content string) {
	hidden := filepath.Join(d.at, ".new")
	require.NoError(d.t, os.WriteFile(hidden, []byte(content), 0o600))
	require.NoError(d.t, os.Rename(hidden, filepath.Join(d.at, name)))
}

func (d *directory) Delete(name string) { require.NoError(d.t, os.Remove(filepath.Join(d.at, name))) }
func (d *directory) Stop()              { d.move(d.path + "-away") }
func (d *directory) Start()             { d.move(d.path) }

func (d *directory) move(to string) {
	require.NoError(d.t, os.Rename(d.at, to))
	d.at = to
}

// Replace implements [sourcetest.Replacer].
func (d *directory) Replace() {
	require.NoError(d.t, os.RemoveAll(d.at))
	require.NoError(d.t, os.Mkdir(d.at, 0o750))
}
