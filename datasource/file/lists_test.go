package file_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// listFixture is a watch of lists on a clock that the test advances. Between two polls
// nothing of it runs.
type listFixture struct {
	t        *testing.T
	clock    *clock.Virtual
	registry *list.Registry
	watch    *lists.Watch
	log      *logged
}

// logged is a log that the test may read.
type logged struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buffer.String(), text)
}

// watchLists runs do with a watch that has polled once.
func watchLists(t *testing.T, path string, do func(t *testing.T, f *listFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &listFixture{
			t: t, clock: clock.NewVirtual(time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)),
			registry: list.NewRegistry(), log: &logged{},
		}
		watch, err := file.WatchLists(t.Context(), f.registry, path, file.Options{
			Interval: interval, Clock: f.clock, Logger: slog.New(slog.NewTextHandler(f.log, nil)),
		})
		require.NoError(t, err)
		f.watch = watch
		synctest.Wait()
		do(t, f)
		watch.Close()
		require.Zero(t, f.clock.Timers())
	})
}

// poll makes the source poll n times.
func (f *listFixture) poll(n int) {
	for range n {
		f.clock.Advance(interval)
		synctest.Wait()
	}
}

// requireList asserts that the list in force has exactly these of the texts a, b and c.
func (f *listFixture) requireList(name, texts string) {
	f.t.Helper()
	l := f.registry.Get(name)
	require.NotNil(f.t, l, "there is no list %q: %v", name, f.registry.Status())
	for _, text := range []string{"a", "b", "c"} {
		require.Equal(f.t, strings.Contains(texts, text), l.ContainsText(text), "%q", text)
	}
}

// status returns the status of the list that a document has.
func (f *listFixture) status(document string) list.Status {
	f.t.Helper()
	for _, s := range f.registry.Status() {
		if s.Document == document {
			return s
		}
	}
	require.Fail(f.t, "the document is not known", document)
	return list.Status{}
}

func TestFilesOfADirectoryAreLists(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scrapers.txt"), "# who\na\n")
	write(t, filepath.Join(dir, "partners.list"), "b\nc\n")
	write(t, filepath.Join(dir, "rules.yaml"), "flow: []\n")
	write(t, filepath.Join(dir, ".hidden.txt"), "a\n")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "below"), 0o700))
	write(t, filepath.Join(dir, "below", "other.txt"), "a\n")
	watchLists(t, dir, func(t *testing.T, f *listFixture) {
		require.NoError(t, f.watch.Ready(t.Context()))
		assert.Equal(t, []string{"partners", "scrapers"}, f.registry.Names())
		f.requireList("scrapers", "a")
		f.requireList("partners", "bc")

		s := f.status("scrapers.txt")
		assert.True(t, s.InForce)
		assert.Equal(t, 1, s.Entries)
		assert.Equal(t, f.clock.Now(), s.Since)
		assert.NotZero(t, s.Digest)
		assert.Equal(t, "file:"+dir, s.Source)
		assert.Equal(t, lists.Status{Source: "file:" + dir, Ready: true, Connected: true, Since: f.clock.Now()}, f.watch.Status())
	})
}

func TestOneFileIsOneList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "scrapers.csv")
	write(t, path, "a\n")
	watchLists(t, path, func(t *testing.T, f *listFixture) {
		f.requireList("scrapers", "a")
		write(t, path, "b\n")
		f.poll(2)
		f.requireList("scrapers", "b")
	})
}

func TestListIsNotReadWhileItsFileIsBeingWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.txt")
	write(t, path, "a\n")
	watchLists(t, filepath.Dir(path), func(t *testing.T, f *listFixture) {
		for _, soFar := range []string{"", "a\n", "a\nb\n", "a\nb\nc\n"} {
			write(t, path, soFar)
			f.poll(1)
			f.requireList("l", "a")
		}
		f.poll(1)
		f.requireList("l", "abc")
	})
}

func TestReplacedListTakesEffectAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.txt")
	write(t, path, "a\n")
	watchLists(t, filepath.Dir(path), func(t *testing.T, f *listFixture) {
		f.poll(20)
		held := f.registry.Get("l")
		replace(t, path, "b\nc\n")
		f.poll(1)
		f.requireList("l", "a")
		f.poll(1)
		f.requireList("l", "bc")
		assert.True(t, held.ContainsText("a"), "a call that has begun keeps its list")
	})
}

func TestListWithMistakesLeavesTheLastGoodOneInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.txt")
	for name, bad := range map[string]string{
		"an empty file":    "",
		"an endless line":  strings.Repeat("x", 1<<20),
		"a text as prefix": "10.0.0.0/8\n10.1.2.3/99\n",
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, "a\nb\n")
			watchLists(t, filepath.Dir(path), func(t *testing.T, f *listFixture) {
				good := f.status("l.txt")
				write(t, path, bad)
				f.poll(2)
				f.requireList("l", "ab")
				s := f.status("l.txt")
				require.Error(t, s.Err)
				assert.Equal(t, f.clock.Now(), s.FailedAt)
				assert.Equal(t, []any{good.Digest, good.Since, good.Entries}, []any{s.Digest, s.Since, s.Entries})
				require.NoError(t, f.watch.Ready(t.Context()), "a mistake is nothing to wait for")

				f.poll(100)
				assert.Equal(t, 1, f.log.count("is not put in force"), "it is logged once")
				assert.Zero(t, f.log.count("10.1.2.3"), "entries are not logged")
				write(t, path, "c\n")
				f.poll(2)
				f.requireList("l", "c")
				assert.NoError(t, f.status("l.txt").Err)
			})
		})
	}
}

func TestMistakeThatIsTakenBackIsForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.txt")
	write(t, path, "a\n")
	watchLists(t, filepath.Dir(path), func(t *testing.T, f *listFixture) {
		write(t, path, "")
		f.poll(2)
		require.Error(t, f.status("l.txt").Err)
		write(t, path, "a\n")
		f.poll(2)
		require.NoError(t, f.status("l.txt").Err)
		f.requireList("l", "a")
	})
}

func TestRemovedFileRemovesItsList(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "l.txt")
	write(t, path, "a\n")
	write(t, filepath.Join(dir, "other.txt"), "b\n")
	watchLists(t, dir, func(t *testing.T, f *listFixture) {
		handle := f.registry.Handle("l")
		remove(t, path)
		f.poll(1)
		require.NotNil(t, handle.List(), "it may be about to be recreated")
		f.poll(1)
		require.Nil(t, handle.List())
		f.requireList("other", "b")
		assert.Equal(t, 1, f.log.count("list removed"))

		write(t, path, "c\n")
		f.poll(2)
		f.requireList("l", "c")
		assert.Same(t, f.registry.Get("l"), handle.List(), "rules see it")
	})
}

func TestListsStayWhenTheirDirectoryDisappears(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lists")
	require.NoError(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "l.txt"), "a\n")
	watchLists(t, dir, func(t *testing.T, f *listFixture) {
		require.NoError(t, os.Rename(dir, dir+".away"))
		f.poll(20)
		f.requireList("l", "a")
		s := f.watch.Status()
		assert.False(t, s.Connected)
		require.ErrorIs(t, s.Err, os.ErrNotExist)
		assert.Equal(t, 1, f.log.count("cannot be read, its lists stay"))

		require.NoError(t, os.Mkdir(dir, 0o700)) // an empty mount point
		f.poll(20)
		f.requireList("l", "a")
		require.NoError(t, os.Remove(dir))
		require.NoError(t, os.Rename(dir+".away", dir))
		f.poll(20)
		f.requireList("l", "a")
		assert.True(t, f.watch.Status().Connected)
		assert.Equal(t, 1, f.log.count("is connected again"))
	})
}

func TestUnreadableListIsReportedAndTheOthersAreRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.txt"), 0o700))
	write(t, filepath.Join(dir, "..txt"), "hidden")
	write(t, filepath.Join(dir, "good.txt"), "a\n")
	watchLists(t, dir, func(t *testing.T, f *listFixture) {
		require.NoError(t, f.watch.Ready(t.Context()))
		f.requireList("good", "a")
		require.ErrorContains(t, f.status("folder.txt").Err, "no regular file")
		assert.False(t, f.status("folder.txt").InForce)
	})
}

func TestTwoFilesOfOneListAreInForceByName(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "l.txt"), "a\n")
	watchLists(t, dir, func(t *testing.T, f *listFixture) {
		f.requireList("l", "a")
		write(t, filepath.Join(dir, "l.list"), "b\n")
		f.poll(2)
		f.requireList("l", "b")
		assert.False(t, f.status("l.txt").InForce)
		remove(t, filepath.Join(dir, "l.list"))
		f.poll(2)
		f.requireList("l", "a")
		assert.True(t, f.status("l.txt").InForce)
	})
}

func TestReadyNamesTheSourceThatIsMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	watchLists(t, dir, func(t *testing.T, f *listFixture) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := f.watch.Ready(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "file:"+dir)
		f.watch.Close()
		require.ErrorIs(t, f.watch.Ready(t.Context()), lists.ErrClosed)
	})
}

func TestListsStayWhenTheWatchEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.txt")
	write(t, path, "a\n")
	watchLists(t, path, func(t *testing.T, f *listFixture) {
		f.watch.Close()
		write(t, path, "b\n")
		f.poll(20)
		f.requireList("l", "a")
	})
}

func TestWatchListsNamesWrongOptions(t *testing.T) {
	_, err := file.WatchLists(t.Context(), nil, "x", file.Options{})
	require.ErrorContains(t, err, "the registry is nil")
	_, err = file.WatchLists(t.Context(), list.NewRegistry(), "", file.Options{})
	require.ErrorContains(t, err, "the path is empty")
	_, err = file.WatchLists(t.Context(), list.NewRegistry(), "x", file.Options{Interval: -1})
	require.ErrorContains(t, err, "Interval is negative")
}
