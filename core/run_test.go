package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// scripted is a source that does one thing after the other, each time it is run.
type scripted struct {
	runs []func(ctx context.Context, sink core.Sink) error
	at   []time.Time // when
}

func (s *scripted) Name() string { return "scripted" }

func (s *scripted) Run(ctx context.Context, sink core.Sink) error {
	s.at = append(s.at, time.Now())
	return s.runs[len(s.at)-1](ctx, sink)
}

// lockedBuffer may be read while it is written to.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

var errOdd = errors.New("odd")

func TestSourceThatPanicsIsReportedAndStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		var rejected []core.Rejection
		e := core.New(core.Config{
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Observer: core.Observer{Rejected: func(r core.Rejection) { rejected = append(rejected, r) }},
		})
		defer e.Close()
		panics := func(context.Context, core.Sink) error { panic(errOdd) }
		source := &scripted{runs: []func(context.Context, core.Sink) error{
			func(_ context.Context, sink core.Sink) error {
				sink.Apply(complete(doc("a", 1, text("a", 1))))
				panic(errOdd)
			},
			panics, panics, panics, panics, panics, panics, panics,
			func(context.Context, core.Sink) error {
				time.Sleep(time.Minute)
				panic("after a minute")
			},
			func(ctx context.Context, sink core.Sink) error {
				sink.Apply(complete(doc("a", 2, text("a", 2))))
				<-ctx.Done()
				return ctx.Err()
			},
		}}
		require.NoError(t, e.Follow(t.Context(), source))
		synctest.Wait()
		assert.Equal(t, map[string]float64{"a": 1}, active(e))
		status := e.Status().Sources[0]
		assert.False(t, status.Connected)
		require.EqualError(t, status.Err, `core: source "scripted" panicked: odd`)
		require.ErrorIs(t, status.Err, errOdd)
		assert.Contains(t, log.String(), "source panicked, the rules in force stay")
		assert.Contains(t, log.String(), "run_test.go", "the stack")

		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.Equal(t, map[string]float64{"a": 2}, active(e))
		assert.True(t, e.Status().Sources[0].Connected)
		var pauses []time.Duration
		for i := range source.at[1:] {
			pauses = append(pauses, source.at[i+1].Sub(source.at[i]))
		}
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{
			100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms, time.Minute + 100*ms,
		}, pauses)
		assert.Len(t, rejected, 9)
		assert.Empty(t, rejected[0].Document)
		assert.Zero(t, e.Snapshot().Rejected, "no document was")
	})
}

func TestCloseEndsTheRestartOfASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		source := &scripted{runs: []func(context.Context, core.Sink) error{
			func(context.Context, core.Sink) error { panic(errOdd) },
		}}
		require.NoError(t, e.Follow(t.Context(), source))
		synctest.Wait()
		e.Close()
		assert.Len(t, source.at, 1)
	})
}

func TestSourceThatEndsItsGoroutineCanBeFollowedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := core.New(core.Config{Logger: quiet})
		defer e.Close()
		exits := func(context.Context, core.Sink) error { runtime.Goexit(); return nil }
		source := &scripted{runs: []func(context.Context, core.Sink) error{exits, exits}}
		for range 2 {
			require.NoError(t, e.Follow(t.Context(), source))
			synctest.Wait()
			require.ErrorContains(t, e.Status().Sources[0].Err, "it has ended its goroutine")
		}
	})
}

func TestFollowOfNothingIsAnError(t *testing.T) {
	e, _ := newEngine(t)
	require.EqualError(t, e.Follow(t.Context(), nil), "core: Follow of a nil source: was the error of what opens it ignored?")
	require.EqualError(t, e.Follow(t.Context(), (*memory)(nil)), "core: Follow of a nil source: was the error of what opens it ignored?")
	var none context.Context
	require.EqualError(t, e.Follow(none, newMemory("memory")), "core: Follow with a nil context: "+
		"use context.Background() to follow until the engine is closed")
	assert.Empty(t, e.Status().Sources)
}

// movedClock is moved right before each timer is armed.
type movedClock struct {
	*clock.Virtual
	move func()
}

func (c *movedClock) TimerAt(at clock.Instant) clock.Timer {
	c.move()
	return c.Virtual.TimerAt(at)
}

// A test that sees a call wait may move the clock before the timer of that call is
// armed.
func TestClockThatIsMovedBeforeATimerIsArmedWakesTheCall(t *testing.T) {
	c := &movedClock{Virtual: clock.NewVirtual(begin)}
	e := core.New(core.Config{Clock: c, Logger: quiet})
	defer e.Close()
	load(t, e, throttle("r", 1, time.Minute))
	require.Equal(t, 1, enter(e, "r", 1))
	moves := 0
	c.move = func() {
		moves++
		assert.EqualValues(t, 1, e.Resource("r").Snapshot().Waiting)
		c.Advance(time.Second)
	}
	for range 10 {
		require.Equal(t, 1, enter(e, "r", 1))
	}
	assert.Equal(t, 10, moves)
	assert.Equal(t, begin.Add(10*time.Second), c.Now().Time())
	assert.Zero(t, c.Timers())
}
