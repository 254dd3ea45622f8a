package lastgood_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// run runs a test of a service that has no copy at first.
func run(t *testing.T, do func(t *testing.T, s *service)) {
	t.Helper()
	path := copyPath(t)
	synctest.Test(t, func(t *testing.T) { do(t, start(t, path, begin())) })
}

// requireSaved asserts that exactly the documents that rule makes are saved.
func (s *service) requireSaved(limits map[string]string) {
	s.t.Helper()
	want := map[string]string{}
	for name, limit := range limits {
		want[name] = string(rule(name, limit, 0).Data)
	}
	require.Equal(s.t, want, saved(s.t, s.path))
}

func broken(name string) core.Document {
	return core.Document{Name: name, Data: []byte("flow: [")}
}

func TestChangesAreSavedAtMostOnceInAnInterval(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		s.deliver(all(1, rule("a", "1", 1)))
		s.pass(time.Second - 1)
		require.Nil(t, saved(t, s.path))
		s.pass(1)
		s.requireSaved(map[string]string{"a": "1"})
		info := identity(t, s.path)
		assert.Equal(t, os.FileMode(0o600), info.Mode())

		saves := 0
		for i := range 40 { // ten changes a second
			s.deliver(some(int64(2+i), rule("a", string(rune('0'+i%10)), int64(2+i))))
			s.pass(100 * time.Millisecond)
			if now := identity(t, s.path); !os.SameFile(info, now) {
				info = now
				saves++
			}
		}
		assert.Equal(t, 4, saves)
		s.requireSaved(map[string]string{"a": "9"})
	})
}

func TestUnchangedDocumentsAreNotSaved(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		change := all(1, rule("a", "1", 1))
		s.deliver(change)
		s.pass(time.Second)
		info := identity(t, s.path)

		s.deliver(change)
		s.deliver(some(1))
		s.lose("no route")
		s.deliver(change)
		s.deliver(some(1, broken("a")))
		s.pass(30 * time.Second)
		assert.True(t, os.SameFile(info, identity(t, s.path)))

		s.deliver(some(2))
		s.pass(time.Second)
		assert.False(t, os.SameFile(info, identity(t, s.path)), "another revision of the source")
	})
}

func TestLastDeliveryIsSavedWhenTheRunEnds(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		s.deliver(all(1, rule("a", "1", 1)))
		s.drain()
		s.requireSaved(map[string]string{"a": "1"})
		require.Zero(t, s.clock.Timers())
	})
}

func TestTimeOfTheCopyIsUpdatedWhileTheSourceCanBeRead(t *testing.T) {
	at := func(s *service) time.Duration {
		c, err := lastgood.Load(s.path)
		require.NoError(s.t, err)
		return c.CopiedAt.Time().Sub(begin())
	}
	run(t, func(t *testing.T, s *service) {
		s.deliver(all(1, rule("a", "1", 1)))
		s.pass(time.Second)
		require.Equal(t, time.Second, at(s))
		s.pass(time.Hour - 1)
		require.Equal(t, time.Second, at(s))
		s.pass(1)
		require.Equal(t, time.Hour+time.Second, at(s))

		s.pass(30 * time.Minute)
		s.lose("no route")
		s.pass(10 * time.Hour)
		require.Equal(t, time.Hour+time.Second, at(s))
		s.drain()
		require.Equal(t, 90*time.Minute+time.Second, at(s), "when it was lost, and not later")
	})
	run(t, func(t *testing.T, s *service) {
		s.deliver(all(1))
		s.pass(time.Minute)
		s.drain()
		require.Equal(t, time.Minute, at(s))
	})
}

// twoHands is a clock whose wall clock is set while time goes on.
type twoHands struct {
	*clock.Virtual
	set *atomic.Int64 // how much later it is by the wall clock, in nanoseconds
}

func (c twoHands) Until(t time.Time) time.Duration {
	return c.Virtual.Until(t) - time.Duration(c.set.Load())
}

// The copy is read by another process, which knows nothing of when this one began.
func TestTimeOfTheCopyFollowsTheWallClock(t *testing.T) {
	path := copyPath(t)
	at := func() time.Duration {
		c, err := lastgood.Load(path)
		require.NoError(t, err)
		return c.CopiedAt.Time().Sub(begin())
	}
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Int64
		s := start(t, path, begin(), func(o *lastgood.Options) { o.Clock = twoHands{o.Clock.(*clock.Virtual), &set} })
		s.deliver(all(1, rule("a", "1", 1)))
		s.pass(time.Second)
		require.Equal(t, time.Second, at())
		set.Store(int64(7 * time.Hour)) // the machine was suspended
		s.deliver(all(2, rule("a", "2", 2)))
		s.pass(time.Second)
		require.Equal(t, 7*time.Hour+2*time.Second, at())
		set.Store(-int64(5 * time.Hour))
		s.pass(time.Hour)
		require.Equal(t, -4*time.Hour+2*time.Second, at(), "its time is another one although nothing has changed")
		s.lose("no route")
		s.drain()
	})
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Int64
		set.Store(int64(24 * time.Hour))
		s := start(t, path, begin(), func(o *lastgood.Options) { o.Clock = twoHands{o.Clock.(*clock.Virtual), &set} })
		s.lose("no route")
		s.pass(2 * time.Hour)
		require.Equal(t, begin().Add(-4*time.Hour+2*time.Second), s.status().CopiedAt.Time())
		s.drain()
		require.Equal(t, -4*time.Hour+2*time.Second, at(), "a copy of a copy is as old")
	})
}

func TestOnlyDocumentsInForceAreSaved(t *testing.T) {
	run(t, func(_ *testing.T, s *service) {
		s.deliver(all(1, rule("a", "1", 1), rule("b", "1", 1), broken("c"), core.Document{Name: "d", Err: errors.New("unreadable")}))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "1"})

		// A document that is rejected, or unreadable, keeps its last good version …
		s.deliver(some(2, broken("a"), core.Document{Name: "b", Err: errors.New("unreadable")}, rule("c", "2", 2)))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "1", "c": "2"})
		s.deliver(some(3, core.Document{Name: "a", Data: []byte("flew: []")}, broken("b"), broken("c")))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "1", "c": "2"})

		// … until it is removed.
		s.deliver(core.Change{Removed: []string{"a"}, Revision: 4})
		s.pass(time.Second)
		s.requireSaved(map[string]string{"b": "1", "c": "2"})
		s.deliver(all(5, broken("c")))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"c": "2"})
		s.deliver(all(6))
		s.pass(time.Second)
		s.requireSaved(map[string]string{})
	})
}

// A document whose rules lost a name conflict is saved as it is: after a restart
// they conflict again.
func TestDocumentThatLostANameConflictIsSaved(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		require.NoError(t, s.Load(rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 9}}}))
		s.deliver(all(1, rule("a", "1", 1), rule("b", "1", 1)))
		require.Equal(t, map[string]float64{"a": 9, "b": 1}, s.limits())
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "1"})

		require.NoError(t, s.Load(rules.Set{}))
		require.Equal(t, map[string]float64{"a": 1, "b": 1}, s.limits())
		s.pass(32 * time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "1"})
	})
}

// The engine may apply a version that was held back, and then receive another one,
// between two checks.
func TestVersionAppliedBetweenTwoChecksIsSaved(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		require.NoError(t, s.Load(rules.Set{Flow: []flow.Rule{{Resource: "a", Limit: 9}}}))
		s.deliver(all(1, rule("a", "1", 1)))
		require.NoError(t, s.Load(rules.Set{}))
		s.deliver(some(2, broken("a")))
		require.Equal(t, map[string]float64{"a": 1}, s.limits())
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1"})
	})
}

func TestSourceMayReuseItsBuffers(t *testing.T) {
	run(t, func(_ *testing.T, s *service) {
		d := rule("a", "1", 1)
		s.deliver(all(1, d))
		d.Data[bytes.IndexByte(d.Data, '1')] = '2'
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1"})
		s.deliver(some(2, d))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "2"})
	})
}

func TestDocumentsDeliveredByAnotherRunAreNotSaved(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		s.drain()
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, s.Follow(ctx, s.source)) // itself
		s.deliver(all(1, rule("a", "1", 1)))
		cancel()
		synctest.Wait()
		s.follow()
		s.deliver(all(2, broken("a"), rule("b", "1", 1)))
		s.pass(10 * time.Second)
		require.Nil(t, saved(t, s.path))
		assert.Equal(t, 1, s.log.count("level=WARN", "cannot be saved", `in force of \"a\" was not delivered`))

		s.deliver(some(3, rule("a", "2", 3)))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "2", "b": "1"})
		assert.Equal(t, 1, s.log.count("level=INFO", "is saved again"))
	})
}

func TestFailedSaveIsLoggedOnceAndRetried(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		directory := filepath.Dir(s.path)
		require.NoError(t, os.Remove(directory))
		s.deliver(all(1, rule("a", "1", 1)))
		s.pass(time.Minute)
		require.Equal(t, map[string]float64{"a": 1}, s.limits())
		require.Equal(t, 1, s.log.count("level=WARN", "cannot be saved, its rules are not affected",
			s.path+": creating a file beside it: no such file or directory"))

		require.NoError(t, os.WriteFile(directory, nil, 0o600))
		s.deliver(some(2, rule("a", "2", 2)))
		s.pass(time.Minute)
		require.Equal(t, 2, s.log.count("level=WARN"))
		require.Equal(t, 1, s.log.count("cannot be saved", "creating a file beside it: not a directory"))

		require.NoError(t, os.Remove(directory))
		require.NoError(t, os.MkdirAll(s.path, 0o750)) // the copy itself is a directory
		s.pass(time.Minute)
		require.Equal(t, 1, s.log.count("cannot be saved", "renaming: file exists"))
		entries, err := os.ReadDir(directory)
		require.NoError(t, err)
		require.Len(t, entries, 1, "what could not be renamed is removed")

		require.NoError(t, os.Remove(s.path))
		s.pass(32 * time.Second)
		s.requireSaved(map[string]string{"a": "2"})
		assert.Equal(t, 3, s.log.count("level=WARN"))
		assert.Equal(t, 1, s.log.count("level=INFO", "is saved again"))
	})
}

func TestRemovedCopyIsWrittenAgain(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		s.deliver(all(1, rule("a", "1", 1)))
		s.pass(time.Second)
		for range 2 {
			require.NoError(t, os.Remove(s.path))
			s.pass(10 * time.Second)
			s.pass(time.Second)
			s.requireSaved(map[string]string{"a": "1"})
		}
		assert.Equal(t, 2, s.log.count("level=WARN", "was removed and is written again", s.path))

		// For a while it cannot be written.
		require.NoError(t, os.RemoveAll(filepath.Dir(s.path)))
		for range 60 {
			s.pass(time.Second)
		}
		assert.Equal(t, 3, s.log.count("was removed and is written again"))
		assert.Equal(t, 1, s.log.count("cannot be saved"))
		require.NoError(t, os.Mkdir(filepath.Dir(s.path), 0o700))
		s.pass(32 * time.Second)
		s.requireSaved(map[string]string{"a": "1"})
	})
}

func TestCopyRemovedWhileInForceIsWrittenAgain(t *testing.T) {
	path := copyPath(t)
	savedBy(t, path, all(1, rule("a", "1", 1)))
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin().Add(time.Hour))
		s.lose("no route")
		require.Equal(t, map[string]float64{"a": 1}, s.limits())
		require.NoError(t, os.Remove(path))
		s.pass(10 * time.Second)
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1"})
		c, err := lastgood.Load(path)
		require.NoError(t, err)
		assert.Equal(t, begin(), c.CopiedAt.Time(), "it is as old as it was")
	})
}

func TestMissingCopyIsNotReportedBeforeTheFirstSave(t *testing.T) {
	run(t, func(t *testing.T, s *service) {
		s.lose("no route")
		s.pass(time.Minute)
		assert.Zero(t, s.log.count("was removed"))
		assert.Nil(t, saved(t, s.path))
	})
}

func TestTooLargeCopyIsNotSaved(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes 64 MiB")
	}
	path := copyPath(t)
	c := lastgood.Copy{App: "shop", Source: "script", At: begin(), Documents: []core.Document{rule("a", "1", 1)}}
	require.NoError(t, c.Save(path))
	huge := core.Document{Name: "b", Data: bytes.Repeat([]byte{0xff}, lastgood.MaxSize/4*3)} // which base64 makes longer
	c.Documents = append(c.Documents, huge)
	require.ErrorContains(t, c.Save(path), "bytes, at most 67108864 are kept")
	c.Documents = append(c.Documents, huge)
	require.ErrorContains(t, c.Save(path), "at most 67108864 are kept")
	assert.Len(t, saved(t, path), 1)
}

func TestTemporaryFilesOfAKilledProcessAreRemoved(t *testing.T) {
	path := copyPath(t)
	directory := filepath.Dir(path)
	others := []string{".rules.copy.b.1.unfinished", ".other.1.unfinished", ".rules.copy.2", "rules.copy.3.unfinished"}
	for _, name := range append(others, ".rules.copy.4.unfinished", ".rules.copy.55.unfinished") {
		require.NoError(t, os.WriteFile(filepath.Join(directory, name), nil, 0o600))
	}
	synctest.Test(t, func(t *testing.T) { start(t, path, begin()).lose("no route") })
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	assert.ElementsMatch(t, others, names)
}
