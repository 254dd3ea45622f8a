package metriclog_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	metriclog "github.com/penstock-go/penstock/metrics/log"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is an engine, in a bubble, and a log of it.
type service struct {
	*core.Engine
	t       *testing.T
	options metriclog.Options
	log     *text
	stop    func()       // ends the log
	lag     atomic.Int64 // by which calls are counted late, in nanoseconds
	set     atomic.Int64 // how much later it is by the wall clock than when the clock was made, in nanoseconds
}

// lateClock is the clock of a service some of whose calls are late.
type lateClock struct {
	clock.Clock
	*service
}

// Now implements [clock.Clock].
func (c lateClock) Now() clock.Instant { return c.Clock.Now().Add(-time.Duration(c.lag.Load())) }

// Until implements [clock.Clock].
func (c lateClock) Until(t time.Time) time.Duration {
	return c.Clock.Until(t) + time.Duration(c.lag.Load()) - time.Duration(c.set.Load())
}

// text is what was logged.
type text struct {
	mu      sync.Mutex
	builder strings.Builder
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.builder.Write(p)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.builder.String()
}

// logged runs a test of a log in a bubble, whose time is 2000-01-01 00:00:00 UTC at first.
func logged(t *testing.T, options metriclog.Options, test func(s *service)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "logs")
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, log: new(text)}
		s.Engine = core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Clock: lateClock{clock.System(), s}, MaxResources: 10})
		defer s.Close()
		require.NoError(t, s.Load(rules.Set{Flow: []flow.Rule{{Name: "orders", Resource: "orders", Limit: 3}}}))
		options.Dir, options.App, options.Location = dir, "shop", time.UTC
		options.Logger = slog.New(slog.NewTextHandler(s.log, nil))
		s.options = options
		s.start()
		test(s)
		s.stop()
	})
}

func (s *service) start() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(s.t, metriclog.Run(ctx, s.Engine, s.options)) })
	synctest.Wait()
	s.stop = func() {
		cancel()
		running.Wait()
	}
}

// calls makes calls that take some time each.
func (s *service) calls(resource string, n int, took time.Duration) {
	for range n {
		if guard, err := s.Entry(context.Background(), resource); err == nil {
			time.Sleep(took)
			guard.Exit()
		}
	}
}

// wait lets the log write what has happened.
func (s *service) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *service) names() (names []string) {
	entries, err := os.ReadDir(s.options.Dir)
	require.NoError(s.t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (s *service) search(q metriclog.Query) metriclog.Found {
	q.Dir, q.App = s.options.Dir, s.options.App
	found, err := metriclog.Search(q)
	require.NoError(s.t, err)
	return found
}

func (s *service) read(name string) string {
	content, err := os.ReadFile(filepath.Join(s.options.Dir, name))
	require.NoError(s.t, err)
	return string(content)
}

func TestLinesAreThoseOfSentinel(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.calls("orders", 5, 0)
		s.calls("a|b\nc", 1, 14*time.Millisecond)
		s.wait(3 * time.Second)
		assert.Equal(t, []string{"shop-metrics.log.2000-01-01", "shop-metrics.log.2000-01-01.idx"}, s.names())
		assert.Equal(t, "946684800000|2000-01-01 00:00:00|a_b_c|1|0|1|0|14|0|1|0\n"+
			"946684800000|2000-01-01 00:00:00|orders|3|2|3|0|0|0|1|0\n", s.read("shop-metrics.log.2000-01-01"))
		assert.Equal(t, "\x00\x00\x00\x00\x38\x6d\x43\x80\x00\x00\x00\x00\x00\x00\x00\x00", s.read("shop-metrics.log.2000-01-01.idx"))

		found := s.search(metriclog.Query{Resource: "a|b\nc"})
		assert.Equal(t, []metriclog.Line{{
			Time: time.UnixMilli(946684800000), Resource: "a_b_c", Passed: 1, Completed: 1, MeanResponseTime: 14, MaxInFlight: 1,
		}}, found.Lines)
	})
}

func TestASecondIsWrittenOneSecondAfterItHasEnded(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.calls("orders", 1, 0)
		s.wait(1999 * time.Millisecond)
		assert.NoDirExists(t, s.options.Dir, "there are no files before there is something to write")
		s.wait(time.Millisecond)
		assert.Len(t, s.search(metriclog.Query{}).Lines, 1)
	})
}

func TestEndWritesThePresentSecond(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.wait(500 * time.Millisecond)
		s.calls("orders", 2, 0)
		s.stop()
		assert.EqualValues(t, 2, s.search(metriclog.Query{}).Lines[0].Passed)
	})
}

// The lines of a resource sum up to its totals, whatever the traffic.
func TestLinesSumUpToTheTotals(t *testing.T) {
	logged(t, metriclog.Options{MaxFileSize: 2000, MaxFiles: 1000}, func(s *service) {
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() {
				for n := range 200 {
					s.calls(fmt.Sprintf("r%d", (i+n)%7), 1, time.Duration(n%13)*7*time.Millisecond)
					s.calls("orders", 1, time.Duration(i)*time.Millisecond)
				}
			})
		}
		callers.Wait()
		s.stop()
		type sum struct{ passed, blocked, completed uint64 }
		sums := make(map[string]sum)
		found := s.search(metriclog.Query{})
		for _, l := range found.Lines {
			of := sums[l.Resource]
			sums[l.Resource] = sum{of.passed + l.Passed, of.blocked + l.Blocked, of.completed + l.Completed}
		}
		assert.False(t, found.More)
		assert.Zero(t, found.Skipped)
		assert.Greater(t, len(s.names()), 4, "files")
		assert.Len(t, sums, 8)
		for name, got := range sums {
			totals := s.Resource(name).Snapshot().Totals
			assert.Equal(t, sum{totals.Passed, totals.Blocked, totals.Completed}, got, name)
		}
	})
}

// Each call is in one line, also those that are counted when the lines of their second were
// written, of resources that the engine forgets, and of those beyond its bound.
func TestEveryCallIsInOneLine(t *testing.T) {
	logged(t, metriclog.Options{MaxFileSize: 10_000, MaxFiles: 1000}, func(s *service) {
		var passed, blocked, failed atomic.Uint64
		var callers sync.WaitGroup
		for i := range 16 {
			callers.Go(func() {
				for n := range 150 {
					s.lag.Store(int64(n%5) * int64(1500*time.Millisecond))
					name := []string{"orders", fmt.Sprint("r", n/25*7+i)}[n%2]
					time.Sleep(time.Duration(n%7) * 100 * time.Millisecond)
					guard, err := s.Entry(context.Background(), name)
					if err != nil {
						blocked.Add(1)
						continue
					}
					passed.Add(1)
					time.Sleep(time.Duration(i*n%23) * 70 * time.Millisecond)
					if n%3 == 0 {
						guard.MarkFailed()
						failed.Add(1)
					}
					guard.Exit()
				}
			})
		}
		callers.Wait()
		s.lag.Store(0)
		s.stop()
		found := s.search(metriclog.Query{})
		var got metriclog.Line
		for _, l := range found.Lines {
			got.Passed += l.Passed
			got.Blocked += l.Blocked
			got.Completed += l.Completed
			got.Failed += l.Failed
		}
		assert.False(t, found.More)
		assert.Zero(t, found.Skipped)
		assert.Equal(t, metriclog.Line{
			Passed: passed.Load(), Blocked: blocked.Load(), Completed: passed.Load(), Failed: failed.Load(),
		}, got)
		assert.NotZero(t, s.Snapshot().Forgotten.Passed, "no resource was forgotten")
		assert.NotEmpty(t, s.search(metriclog.Query{Resource: rule.OtherResources}).Lines)
		assert.NotZero(t, got.Blocked)
	})
}

func TestFilesAreBoundedInSizeAndNumber(t *testing.T) {
	logged(t, metriclog.Options{MaxFileSize: 200, MaxFiles: 3}, func(s *service) {
		for range 40 {
			s.calls("orders", 1, 0)
			s.wait(time.Second)
		}
		s.stop()
		names := s.names()
		assert.Len(t, names, 6)
		for _, name := range names {
			assert.LessOrEqual(t, len(s.read(name)), 200, name)
		}
		lines := s.search(metriclog.Query{}).Lines
		assert.Equal(t, time.UnixMilli(946684839000), lines[len(lines)-1].Time, "the newest are kept")
	})
}

func TestAFileIsBegunEachDayAndByEachRun(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.calls("orders", 1, 0)
		s.stop()
		s.wait(24*time.Hour - time.Second)
		s.start()
		s.calls("orders", 1, 0)
		s.wait(time.Second)
		s.calls("orders", 1, 0)
		s.stop()
		assert.Equal(t, []string{
			"shop-metrics.log.2000-01-01", "shop-metrics.log.2000-01-01.1", "shop-metrics.log.2000-01-01.1.idx", "shop-metrics.log.2000-01-01.idx",
			"shop-metrics.log.2000-01-02", "shop-metrics.log.2000-01-02.idx",
		}, s.names())
		assert.Len(t, s.search(metriclog.Query{}).Lines, 3)
	})
}

// A wall clock that was ahead for a while has left files of days to come. They are no reason to remove
// those of the present.
func TestFilesOfDaysToComeAreRemovedFirst(t *testing.T) {
	logged(t, metriclog.Options{MaxFileSize: 200, MaxFiles: 3}, func(s *service) {
		second := func(n int) {
			for range n {
				s.calls("orders", 1, 0)
				s.wait(time.Second)
			}
		}
		second(5)
		s.set.Store(int64(400 * 24 * time.Hour))
		second(30)
		s.set.Store(0)
		second(30)
		s.stop()
		lines := s.search(metriclog.Query{}).Lines
		assert.GreaterOrEqual(t, len(lines), 5)
		assert.Equal(t, time.UnixMilli(946684864000), lines[len(lines)-1].Time)
		assert.Len(t, s.names(), 6)
	})
}

func TestLinesAreFoundByTimeAlsoIfTheWallClockWasSetBack(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		for _, set := range []time.Duration{0, 4 * time.Hour, time.Hour, 90 * time.Minute} {
			s.set.Store(int64(set))
			s.wait(2 * time.Second) // a second is written once it is over
			s.calls("orders", 1, 0)
			s.wait(3 * time.Second)
		}
		s.stop()
		lines := s.search(metriclog.Query{}).Lines
		require.Len(t, lines, 4)
		assert.IsNonDecreasing(t, []int64{lines[0].Time.Unix(), lines[1].Time.Unix(), lines[2].Time.Unix(), lines[3].Time.Unix()})
		from := time.UnixMilli(946684800000).Add(30 * time.Minute)
		assert.Len(t, s.search(metriclog.Query{From: from, To: from.Add(2 * time.Hour)}).Lines, 2)
	})
}

func TestSearchFindsSecondsByTheIndex(t *testing.T) {
	logged(t, metriclog.Options{MaxFileSize: 500}, func(s *service) {
		start := time.Now()
		for range 20 {
			s.calls("orders", 1, 0)
			s.calls("pay", 1, 0)
			s.wait(time.Second)
		}
		s.stop()
		at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
		found := s.search(metriclog.Query{From: at(7).Add(300 * time.Millisecond), To: at(9)})
		assert.Len(t, found.Lines, 6, "the seconds 7, 8 and 9")
		assert.True(t, at(7).Equal(found.Lines[0].Time))
		assert.Len(t, s.search(metriclog.Query{From: at(7), To: at(9), Resource: "pay"}).Lines, 3)
		assert.Empty(t, s.search(metriclog.Query{From: at(20)}).Lines)
		found = s.search(metriclog.Query{Limit: 5})
		assert.Len(t, found.Lines, 5)
		assert.True(t, found.More)

		for _, name := range s.names() { // the index may be missing, or wrong
			if strings.HasSuffix(name, ".idx") {
				require.NoError(t, os.WriteFile(filepath.Join(s.options.Dir, name), []byte(strings.Repeat("\xff", 40)), 0o600))
			}
		}
		assert.Len(t, s.search(metriclog.Query{From: at(7), To: at(9)}).Lines, 6)
	})
}

func TestSearchSkipsDamagedLines(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.calls("orders", 1, 0)
		s.stop()
		path := filepath.Join(s.options.Dir, "shop-metrics.log.2000-01-01")
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = file.WriteString("946684801000|2000-01-0\n" + strings.Repeat("x", 1<<20) + "\n|||||||||||\n" +
			"946684802000|2000-01-01 00:00:02|orders|9|0|9|0|0|0|1|0\n946684803000|2000-01-01 00:00:03|orders|9|0|9|0|0|0|1|")
		require.NoError(t, err)
		require.NoError(t, file.Close())
		found := s.search(metriclog.Query{})
		assert.Len(t, found.Lines, 2)
		assert.Equal(t, 3, found.Skipped)
	})
}

// What cannot be written is tried again, in a file of its own, and nothing is lost.
func TestLostDirectoryIsMadeAgain(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.calls("orders", 1, 0)
		s.wait(2 * time.Second)
		require.NoError(t, os.RemoveAll(s.options.Dir))
		require.NoError(t, os.WriteFile(s.options.Dir, []byte("in the way"), 0o600))
		s.calls("orders", 2, 0)
		s.wait(10 * time.Second)
		assert.Equal(t, 1, strings.Count(s.log.String(), "\n"), s.log.String())
		assert.Contains(t, s.log.String(), "level=ERROR")
		require.NoError(t, os.Remove(s.options.Dir))
		s.wait(2 * time.Second)
		assert.Contains(t, s.log.String(), `written again`)
		assert.Contains(t, s.log.String(), `joinedSeconds=0`)
		lines := s.search(metriclog.Query{}).Lines
		require.Len(t, lines, 1)
		assert.EqualValues(t, 2, lines[0].Passed)
	})
}

func TestSecondsOfALongFaultAreJoined(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		require.NoError(t, os.WriteFile(s.options.Dir, []byte("in the way"), 0o600))
		for range 100 {
			s.calls("orders", 1, 0)
			s.wait(time.Second)
		}
		require.NoError(t, os.Remove(s.options.Dir))
		s.wait(2 * time.Second)
		var passed uint64
		lines := s.search(metriclog.Query{}).Lines
		for _, l := range lines {
			passed += l.Passed
		}
		assert.EqualValues(t, 100, passed)
		assert.InDelta(t, 58, len(lines), 2)
		assert.EqualValues(t, 1, lines[0].Passed, "it was read when the fault began")
		assert.EqualValues(t, 1, lines[2].Passed)
		assert.EqualValues(t, 1+100-len(lines), lines[1].Passed)
		assert.Contains(t, s.log.String(), fmt.Sprintf("joinedSeconds=%d", 100-len(lines)))
	})
}

func TestWhatCannotBeWrittenAtTheEndIsLogged(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		require.NoError(t, os.WriteFile(s.options.Dir, []byte("in the way"), 0o600))
		s.calls("orders", 1, 0)
		s.stop()
		assert.Contains(t, s.log.String(), "the metric log ends with calls that could not be written")
	})
}

func TestTruncatedFileIsLeftForAnotherOne(t *testing.T) {
	logged(t, metriclog.Options{}, func(s *service) {
		s.calls("orders", 1, 0)
		s.wait(2 * time.Second)
		require.NoError(t, os.Truncate(filepath.Join(s.options.Dir, "shop-metrics.log.2000-01-01"), 10))
		s.calls("orders", 2, 0)
		s.wait(2 * time.Second)
		found := s.search(metriclog.Query{})
		require.Len(t, found.Lines, 1)
		assert.EqualValues(t, 2, found.Lines[0].Passed)
		assert.Empty(t, s.log.String())
	})
}

func TestMistakesInOptionsAreTold(t *testing.T) {
	t.Parallel()
	err := metriclog.Run(t.Context(), nil, metriclog.Options{App: "a/b", MaxFiles: -1, MaxFileSize: -2})
	require.Error(t, err)
	for _, part := range []string{"Dir is empty", `Options.App "a/b" has a slash`, "MaxFiles is -1", "MaxFileSize is -2"} {
		assert.ErrorContains(t, err, part)
	}
	_, err = metriclog.Search(metriclog.Query{From: time.Unix(2, 0), To: time.Unix(1, 0), Limit: -1})
	for _, part := range []string{"Dir is empty", "App is empty", "is before From", "Limit is -1"} {
		assert.ErrorContains(t, err, part)
	}
	_, err = metriclog.Search(metriclog.Query{Dir: filepath.Join(t.TempDir(), "none"), App: "shop"})
	assert.ErrorIs(t, err, os.ErrNotExist)
}
