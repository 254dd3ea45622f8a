package sources_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/core/internal/sleep"
	"github.com/penstock-go/penstock/core/internal/sources"
	"github.com/penstock-go/penstock/rules"
)

// following is a list of sources, and what was told of them.
type following struct {
	sources.List
	mu      sync.Mutex
	running sleep.Goroutines
	told    []string
	book    *ruleset.Book
}

func newFollowing(t *testing.T) *following {
	f := &following{book: ruleset.New(ruleset.Config{Table: rules.NewTable(), MaxRemoval: 1})}
	sleepers := new(sleep.Sleepers)
	sleepers.Init(clock.System())
	f.Init(sources.Config{
		Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Sleepers: sleepers, Go: f.running.Go, Mu: &f.mu,
		Note: func(s *sources.Source, _ clock.Instant, how sources.How, err error) {
			f.told = append(f.told, fmt.Sprint(s.Name, " ", how, " ", err))
		},
	})
	t.Cleanup(func() {
		f.Cancel()
		f.running.Wait()
	})
	return f
}

func (f *following) follow(run func(context.Context, *sources.Source) error, panicked func(*sources.Source, any, []byte)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Follow(context.Background(), "s", f.book.Source, run, panicked)
}

// After a panic the pause doubles, up to five seconds, until the source has run for that long.
func TestASourceThatPanicsIsRunAgainAfterPausesThatDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, begun := newFollowing(t), time.Now()
		var starts []time.Duration
		var panics int
		run := func(context.Context, *sources.Source) error {
			starts = append(starts, time.Since(begun))
			switch len(starts) {
			case 9:
				time.Sleep(5 * time.Second)
			case 11:
				return errors.New("had enough")
			}
			panic("a mistake")
		}
		require.NoError(t, f.follow(run, func(_ *sources.Source, value any, stack []byte) {
			assert.Equal(t, "a mistake", value)
			assert.Contains(t, string(stack), "sources_test.go")
			panics++
		}))
		f.running.Wait()
		var pauses []time.Duration
		for i := 1; i < len(starts); i++ {
			pauses = append(pauses, starts[i]-starts[i-1])
		}
		const ms = time.Millisecond
		assert.Equal(t, []time.Duration{
			100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms, 5000*ms + 100*ms, 200 * ms,
		}, pauses)
		assert.Equal(t, 10, panics)
		assert.Equal(t, []string{"s 3 had enough"}, f.told)
		assert.EqualError(t, f.Find("s").Err, `core: source "s" gave up: had enough`)
	})
}

func TestASourceIsFollowedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		waits := func(ctx context.Context, _ *sources.Source) error {
			<-ctx.Done()
			return ctx.Err()
		}
		require.NoError(t, f.follow(waits, nil))
		assert.EqualError(t, f.follow(waits, nil), `core: source "s" is followed already`)
		f.Cancel()
		f.running.Wait()
		assert.True(t, f.Find("s").HasEnded())
		assert.Empty(t, f.told, "it ended since it was told to")
	})
}

func TestASourceThatEndsItsGoroutineHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollowing(t)
		f.mu.Lock()
		change := f.NextChange()
		f.mu.Unlock()
		require.NoError(t, f.follow(func(context.Context, *sources.Source) error {
			runtime.Goexit()
			return nil
		}, nil))
		<-change
		assert.EqualError(t, f.Find("s").Err, `core: source "s" gave up: it has ended its goroutine`)
		assert.Equal(t, []string{`source "s": core: source "s" gave up: it has ended its goroutine`}, f.Missing())
	})
}
