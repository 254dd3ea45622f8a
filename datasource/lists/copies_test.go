package lists_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// process runs do with a watch that keeps copies in the directory, as a process does that
// is started and ends.
func process(t *testing.T, directory string, do func(t *testing.T, f *fixture), opts ...lists.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewVirtual(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
		f := &fixture{t: t, clock: c, registry: list.NewRegistry(), changes: make(chan func(core.Sink)), texts: make(map[string]func() io.ReadCloser)}
		f.registry.LimitRemoval(0.5, 0, c)
		config := lists.Config{
			Registry: f.registry, Source: f, Open: f.open, Clock: c, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
			MinRetry: time.Second, MaxRetry: 8 * time.Second,
		}
		var err error
		f.watch, err = lists.Start(t.Context(), config.With(append(opts, lists.KeepCopies(directory, "shop"))...))
		require.NoError(t, err)
		synctest.Wait()
		do(t, f)
		f.watch.Close()
		require.Zero(t, c.Timers())
	})
}

func files(t *testing.T, directory string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(directory, "*"))
	require.NoError(t, err)
	hidden, err := filepath.Glob(filepath.Join(directory, ".*"))
	require.NoError(t, err)
	return append(found, hidden...)
}

func complete(documents ...core.Document) core.Change {
	return core.Change{Complete: true, Documents: documents}
}

// kept is a directory with the copy of a list "l" of four texts.
func kept(t *testing.T) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "copies")
	process(t, directory, func(t *testing.T, f *fixture) {
		f.holds("l", "a\nb\nc\nd\n")
		f.apply(complete(document("l", "a\nb\nc\nd\n")))
		require.True(t, f.has("l", "a"))
	})
	require.Len(t, files(t, directory), 1)
	return directory
}

// twoHands is a clock whose wall clock is set while time goes on.
type twoHands struct {
	clock.Clock
	set atomic.Int64 // how much later it is by the wall clock, in nanoseconds
}

func (c *twoHands) Until(t time.Time) time.Duration {
	return c.Clock.Until(t) - time.Duration(c.set.Load())
}

func TestCopiesOfListsHaveTheTimeOfTheWallClock(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "copies")
	c := new(twoHands)
	modified := func() time.Time {
		found, err := os.Stat(files(t, directory)[0])
		require.NoError(t, err)
		return found.ModTime()
	}
	process(t, directory, func(t *testing.T, f *fixture) {
		c.set.Store(int64(30 * time.Hour)) // the machine was suspended
		f.holds("l", "a\n")
		f.apply(complete(document("l", "a\n")))
		require.WithinDuration(t, f.clock.Now().Time().Add(30*time.Hour), modified(), 0)
		c.set.Store(-int64(time.Hour))
		f.clock.Advance(time.Hour)
		synctest.Wait()
		require.WithinDuration(t, f.clock.Now().Time().Add(-time.Hour), modified(), 0)
	}, func(o *lists.Config) { c.Clock, o.Clock = o.Clock, c })
}

func TestServiceStartsWithTheListsOfItsLastRunWhileTheSourceIsAway(t *testing.T) {
	directory := kept(t)
	process(t, directory, func(t *testing.T, f *fixture) {
		assert.True(t, f.has("l", "a"), "at once")
		assert.NotZero(t, f.registry.Status()[0].CopiedAt)
		f.changes <- func(sink core.Sink) { sink.Disconnected(errors.New("test: down")) }
		synctest.Wait()
		require.NoError(t, f.watch.Ready(t.Context()))
		assert.Contains(t, f.log.String(), "last good copy")

		f.apply(complete(document("l", "a\nb\nc\nd\n")))
		assert.Zero(t, f.opened(), "the copy is what the source has")
		assert.Zero(t, f.registry.Status()[0].CopiedAt)
		f.holds("l", "a\nb\nc\nx\n")
		f.deliver("l", "a\nb\nc\nx\n")
		assert.True(t, f.has("l", "x"))
	})
	process(t, directory, func(t *testing.T, f *fixture) { assert.True(t, f.has("l", "x"), "the copy is of the last version") })
}

func TestSilentSourceIsReadyWithCopiesAfterItsTime(t *testing.T) {
	process(t, kept(t), func(t *testing.T, f *fixture) {
		ready := make(chan error, 1)
		go func() { ready <- f.watch.Ready(t.Context()) }()
		synctest.Wait()
		require.Empty(t, ready)
		f.advance(2 * time.Second)
		require.NoError(t, <-ready)
	})
}

func TestWithoutACopyNothingIsReady(t *testing.T) {
	process(t, filepath.Join(t.TempDir(), "copies"), func(t *testing.T, f *fixture) {
		f.advance(time.Minute)
		require.Error(t, f.watch.Ready(ended(t)))
	})
}

// What the source has now is compared with the copy, as if the process had not been restarted.
func TestListThatShrinksWhileTheProcessIsAwayIsHeldBack(t *testing.T) {
	for name, change := range map[string]core.Change{
		"emptied": complete(document("l", "# none\n")), "gone": complete(),
	} {
		t.Run(name, func(t *testing.T) {
			directory := kept(t)
			for range 2 {
				process(t, directory, func(t *testing.T, f *fixture) {
					f.holds("l", "# none\n")
					f.apply(change)
					assert.True(t, f.has("l", "a"))
					require.Error(t, f.registry.Status()[0].HeldBack)
					assert.Contains(t, f.log.String(), "held back")
				})
				require.Len(t, files(t, directory), 1, "nothing else is left")
			}
			process(t, directory, func(t *testing.T, f *fixture) {
				f.holds("l", "# none\n")
				f.apply(change)
				require.NoError(t, f.registry.Confirm(list.Provider{Source: "test:"}))
				synctest.Wait()
				assert.False(t, f.has("l", "a"))
			})
			process(t, directory, func(t *testing.T, f *fixture) { assert.False(t, f.has("l", "a"), "nor in the copy") })
		})
	}
}

func TestListThatCannotBeReadAfterARestartIsThatOfTheCopy(t *testing.T) {
	process(t, kept(t), func(t *testing.T, f *fixture) {
		f.apply(complete(document("l", "new\n")))
		require.ErrorContains(t, f.err("l"), "it is not there")
		assert.True(t, f.has("l", "a"))
		assert.NotZero(t, f.registry.Status()[0].CopiedAt)
	})
}

func TestCopyThatIsDamagedOrOfOthersIsIgnored(t *testing.T) {
	for name, damage := range map[string]func(text []byte) []byte{
		"text changed": func(text []byte) []byte { return []byte(strings.Replace(string(text), "\na\n", "\nx\n", 1)) },
		"cut off":      func(text []byte) []byte { return text[:len(text)-1] },
		"longer":       func(text []byte) []byte { return append(text, "e\n"...) },
		"head changed": func(text []byte) []byte {
			return []byte(strings.Replace(string(text), `"document":"l"`, `"document":"m"`, 1))
		},
		"other app": func(text []byte) []byte {
			return []byte(strings.Replace(string(text), `"app":"shop"`, `"app":"shoq"`, 1))
		},
		"later format": func(text []byte) []byte { return []byte(strings.Replace(string(text), `"format":1`, `"format":2`, 1)) },
		"half a head":  func(text []byte) []byte { return text[:40] },
		"empty":        func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			directory := kept(t)
			path := files(t, directory)[0]
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			changed := damage(text)
			require.NotEqual(t, text, changed)
			require.NoError(t, os.WriteFile(path, changed, 0o600))
			process(t, directory, func(t *testing.T, f *fixture) {
				assert.Nil(t, f.registry.Get("l"))
				assert.Contains(t, f.log.String(), "ignored")
				f.holds("l", "a\n")
				f.apply(complete(document("l", "a\n")))
				assert.True(t, f.has("l", "a"))
			})
			process(t, directory, func(t *testing.T, f *fixture) { assert.True(t, f.has("l", "a"), "the next save replaces it") })
		})
	}
}

func TestCopyThatOthersMayWriteIsIgnored(t *testing.T) {
	directory := kept(t)
	require.NoError(t, os.Chmod(files(t, directory)[0], 0o606))
	process(t, directory, func(t *testing.T, f *fixture) {
		assert.Nil(t, f.registry.Get("l"))
		assert.Contains(t, f.log.String(), "others may write")
	})
}

func TestCopyThatIsTooLargeIsIgnoredUnread(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file has no holes there, and would take a GiB of the disk")
	}
	directory := kept(t)
	require.NoError(t, os.Truncate(files(t, directory)[0], list.MaxSize+1<<20))
	process(t, directory, func(t *testing.T, f *fixture) {
		assert.Nil(t, f.registry.Get("l"))
		assert.Contains(t, f.log.String(), "it has 1074790400 bytes")
	})
}

func TestCopiesAreBounded(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "copies")
	bound := func(c *lists.Config) { c.MaxCopies = 1000 }
	process(t, directory, func(t *testing.T, f *fixture) {
		long := strings.Repeat("x", 900) + "\n"
		f.put("l", "a\n")
		f.put("m", long)
		assert.Equal(t, []string{"l", "m"}, f.registry.Names(), "the list is not affected")
		assert.Contains(t, f.log.String(), "raise Config.MaxCopies")
	}, bound)
	require.Len(t, files(t, directory), 1)
}

func TestCopyThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "missing", "copies")
	process(t, directory, func(t *testing.T, f *fixture) {
		f.put("l", "a\n")
		assert.True(t, f.has("l", "a"))
		assert.Contains(t, f.log.String(), "cannot be kept")
		require.NoError(t, os.MkdirAll(directory, 0o700))
		f.advance(time.Minute)
		require.Len(t, files(t, directory), 1)
		assert.Contains(t, f.log.String(), "kept again")
	})
}

func TestCopyThatSomebodyRemovesIsWrittenAgain(t *testing.T) {
	directory := kept(t)
	process(t, directory, func(t *testing.T, f *fixture) {
		f.holds("l", "a\nb\nc\nd\n")
		f.apply(complete(document("l", "a\nb\nc\nd\n")))
		require.NoError(t, os.Remove(files(t, directory)[0]))
		f.advance(time.Hour)
		f.advance(0)
		require.Len(t, files(t, directory), 1)
	})
}

func TestConfirmedChangesOfListsAreNotHeldBack(t *testing.T) {
	process(t, kept(t), func(t *testing.T, f *fixture) {
		f.holds("l", "# none\n")
		emptied := document("l", "# none\n")
		emptied.Revision = 7
		f.apply(core.Change{Complete: true, Documents: []core.Document{emptied}, Revision: 7, ConfirmedAt: 6})
		require.True(t, f.has("l", "a"), "that was confirmed before")
		f.apply(core.Change{Revision: 8, ConfirmedAt: 8})
		require.False(t, f.has("l", "a"))

		f.holds("m", "a\n")
		of := document("m", "a\n")
		of.Revision = 9
		f.apply(core.Change{Documents: []core.Document{of}, Revision: 9})
		f.apply(core.Change{Removed: []string{"m"}, Revision: 10})
		require.True(t, f.has("m", "a"))
		f.apply(core.Change{Documents: []core.Document{of}, Revision: 11})
		f.apply(core.Change{Removed: []string{"m"}, Revision: 12, ConfirmedAt: 12})
		require.Nil(t, f.registry.Get("m"), "confirmed with the change itself")
	})
}
