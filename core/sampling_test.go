package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// slowSource is a source of signals that takes long.
type slowSource struct {
	*readings
	stubborn bool         // it ignores contexts
	asking   atomic.Int32 // calls of Read under way
	together atomic.Int32 // the most at once

	mu    sync.Mutex
	takes map[rule.Signal]time.Duration // by the clock of the machine
}

func newSlowSource(values map[rule.Signal]float64) *slowSource {
	return &slowSource{readings: newReadings(values), takes: make(map[rule.Signal]time.Duration)}
}

// slow makes the readings of signals take a time from now on.
func (s *slowSource) slow(takes time.Duration, signals ...rule.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, signal := range signals {
		s.takes[signal] = takes
	}
}

func (s *slowSource) Read(ctx context.Context, signal rule.Signal) (float64, error) {
	s.together.Store(max(s.together.Load(), s.asking.Add(1)))
	defer s.asking.Add(-1)
	s.mu.Lock()
	wait := time.NewTimer(s.takes[signal])
	s.mu.Unlock()
	defer wait.Stop()
	if s.stubborn {
		<-wait.C
		return s.readings.Read(ctx, signal)
	}
	select {
	case <-wait.C:
		return s.readings.Read(ctx, signal)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// lines counts lines of a log.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

func (l *lines) with(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buffer.String(), text)
}

// closeFinally closes the engine and has the source answer what it was asked.
func closeFinally(e *core.Engine) {
	e.Close()
	time.Sleep(2 * time.Hour)
}

func newSampledBySource(source core.SignalSource) (*core.Engine, *lines) {
	log := new(lines)
	return core.New(core.Config{
		Logger: slog.New(slog.NewTextHandler(log, nil)), Kinds: []rule.Definition{gaugeKind()}, Signals: source,
	}), log
}

const (
	lost  = "a signal cannot be read"
	found = "a signal can be read again"
)

// A source hangs and ignores contexts. After two seconds rules let calls pass, which the log
// and the status say, until it goes on.
func TestSourceThatHangsMakesSignalsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSlowSource(map[rule.Signal]float64{rule.SignalCPU: 0.9, rule.SignalMemory: 0.9})
		source.stubborn = true
		e, log := newSampledBySource(source)
		defer closeFinally(e)
		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU}, gauge{Resource: "m", Signal: rule.SignalMemory})
		synctest.Wait()
		source.slow(time.Minute, rule.SignalCPU)
		time.Sleep(1900 * time.Millisecond)
		require.Zero(t, enter(e, "r", 1), "the reading is 1.9 s old")
		require.Zero(t, enter(e, "m", 1))
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, enter(e, "r", 1))
		require.Equal(t, 1, enter(e, "m", 1), "while the source hangs, no signal can be read")
		time.Sleep(50 * time.Second)
		require.Equal(t, 2, log.with(lost), "once for each signal")
		for _, s := range e.Status().Signals {
			require.EqualError(t, s.Err, `core: the source of signals has not answered for 2s, it reads "cpu": its Read should end with its context`)
			require.Positive(t, s.At)
			require.Zero(t, s.Value)
		}
		source.slow(0, rule.SignalCPU)
		time.Sleep(10 * time.Second)
		require.Zero(t, enter(e, "r", 1))
		require.Zero(t, enter(e, "m", 1))
		require.Equal(t, 2, log.with(found))
		require.EqualValues(t, 1, source.together.Load(), "one goroutine at a time")
	})
}

// A source that ends with its context hangs for some signals: the others go on as ever,
// however many hang.
func TestOtherSignalsAreReadWhileSomeHang(t *testing.T) {
	names := []rule.Signal{"a", "b", "c", "d", "e", "f"}
	for hanging := 1; hanging < len(names); hanging++ {
		synctest.Test(t, func(t *testing.T) {
			values := make(map[rule.Signal]float64)
			var gauges []gauge
			for _, name := range names {
				values[name] = 0.9
				gauges = append(gauges, gauge{Resource: string(name), Signal: name})
			}
			source := newSlowSource(values)
			e, log := newSampledBySource(source)
			defer closeFinally(e)
			loadGauges(t, e, gauges...)
			synctest.Wait()
			source.slow(time.Hour, names[:hanging]...)
			time.Sleep(4 * time.Second)
			for minute := time.Now(); time.Since(minute) < time.Minute; time.Sleep(time.Second) {
				for i, name := range names {
					require.Equal(t, i < hanging, enter(e, string(name), 1) == 1, "%s of %d that hang", name, hanging)
				}
			}
			require.Equal(t, hanging, log.with(lost))
			require.Zero(t, log.with(found))
			source.slow(0, names...)
			time.Sleep(3 * time.Second)
			require.Equal(t, hanging, log.with(found))
		})
	}
}

// Readings that end within their time count, however long they take.
func TestSlowReadingsCountAsLongAsTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSlowSource(map[rule.Signal]float64{rule.SignalCPU: 0.9})
		e, log := newSampledBySource(source)
		defer closeFinally(e)
		source.slow(900*time.Millisecond, rule.SignalCPU)
		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
		time.Sleep(time.Second)
		for range 60 {
			require.Zero(t, enter(e, "r", 1))
			time.Sleep(time.Second)
		}
		require.Zero(t, log.with(lost))

		source.slow(1100*time.Millisecond, rule.SignalCPU)
		time.Sleep(time.Minute)
		require.Equal(t, 1, enter(e, "r", 1))
		require.Equal(t, 1, log.with(lost), "answers that come too late are dropped")
		require.Zero(t, log.with(found))
	})
}

// A rule begins to read a signal of a source that hangs already.
func TestRuleThatComesWhileTheSourceHangsIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSlowSource(map[rule.Signal]float64{rule.SignalCPU: 0.9, rule.SignalMemory: 0.9})
		source.stubborn = true
		source.slow(time.Hour, rule.SignalCPU)
		e, log := newSampledBySource(source)
		defer closeFinally(e)
		first := gauge{Name: "first", Resource: "r", Signal: rule.SignalCPU}
		loadGauges(t, e, first)
		time.Sleep(1900 * time.Millisecond)
		require.Zero(t, log.with(lost))
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, log.with(lost))
		loadGauges(t, e, first, gauge{Name: "second", Resource: "r", Signal: rule.SignalMemory})
		time.Sleep(3 * time.Second)
		require.Equal(t, 2, log.with(lost))
		require.Equal(t, 1, log.with("second"))
	})
}

// Rules go and come while the source hangs: only one goroutine waits for it.
func TestSourceThatHangsIsAskedByOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSlowSource(map[rule.Signal]float64{rule.SignalCPU: 0.9})
		source.stubborn = true
		source.slow(time.Hour, rule.SignalCPU)
		e, _ := newSampledBySource(source)
		defer closeFinally(e)
		for range 20 {
			loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
			time.Sleep(5 * time.Second)
			require.EqualValues(t, 1, source.asking.Load())
			loadGauges(t, e)
			synctest.Wait()
		}
		require.EqualValues(t, 1, source.together.Load())
	})
}

func TestCloseDoesNotWaitForASourceThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		stubborn bool
		takes    time.Duration
	}{
		"and ends with its context": {takes: 0},
		"and ignores its context":   {stubborn: true, takes: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSlowSource(map[rule.Signal]float64{rule.SignalCPU: 0.9})
				source.stubborn = test.stubborn
				source.slow(time.Hour, rule.SignalCPU)
				e, log := newSampledBySource(source)
				loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
				synctest.Wait()
				require.EqualValues(t, 1, source.asking.Load())
				closing := time.Now()
				e.Close()
				require.Equal(t, test.takes, time.Since(closing))
				require.Equal(t, test.stubborn, source.asking.Load() == 1)
				e.SampleSignals()
				time.Sleep(2 * time.Hour)
				require.Zero(t, source.asking.Load())
				require.Zero(t, log.with(lost), "the answer that came after that is dropped")
			})
		})
	}
}

// The ages of readings count on the clock of the engine. When that goes on by much at once
// between two samples, nothing has hung.
func TestAgeOfReadingsCountsOnTheClockOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSlowSource(map[rule.Signal]float64{rule.SignalCPU: 0.9, rule.SignalMemory: 0.9})
		log, c := new(lines), clock.NewVirtual(begin)
		e := core.New(core.Config{
			Clock: c, Logger: slog.New(slog.NewTextHandler(log, nil)), Kinds: []rule.Definition{gaugeKind()}, Signals: source,
		})
		defer closeFinally(e)
		advance := func(d time.Duration) {
			c.Advance(d)
			synctest.Wait()
		}
		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU}, gauge{Resource: "m", Signal: rule.SignalMemory})
		advance(0)
		require.Zero(t, enter(e, "r", 1))
		advance(time.Hour)
		require.Zero(t, enter(e, "r", 1))
		require.Zero(t, log.with(lost))

		source.slow(time.Hour, rule.SignalCPU)
		before := source.count(rule.SignalMemory)
		for range 60 {
			advance(250 * time.Millisecond)
		}
		require.Equal(t, 1, log.with(lost))
		require.Greater(t, source.count(rule.SignalMemory), before+15)
	})
}

// readFunc is a source of signals.
type readFunc func(ctx context.Context, signal rule.Signal) (float64, error)

func (f readFunc) Read(ctx context.Context, signal rule.Signal) (float64, error) {
	return f(ctx, signal)
}

func TestReasonOfTheSourceIsReplacedWhenItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		e, log := newSampledBySource(readFunc(func(ctx context.Context, _ rule.Signal) (float64, error) {
			if hangs.Load() {
				<-ctx.Done()
			}
			return 0, errors.New("no file")
		}))
		defer closeFinally(e)
		loadGauges(t, e, gauge{Resource: "r", Signal: rule.SignalCPU})
		synctest.Wait()
		require.ErrorContains(t, e.Status().Signals[0].Err, "no file")
		hangs.Store(true)
		time.Sleep(5 * time.Second)
		require.ErrorContains(t, e.Status().Signals[0].Err, "has not answered for 2s")
		assert.Equal(t, 1, log.with(lost), "once")
	})
}
