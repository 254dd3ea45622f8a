package flow_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// The signal rises while many goroutines take from a window in one instant. No call that
// began after a sample passes when the window holds as much as that allows for.
func TestNoCallExceedsTheLimitOfTheSampleBeforeIt(t *testing.T) {
	t.Parallel()
	levels := []struct {
		shown float64
		limit int64
	}{{0, 10_000}, {0.72, 9100}, {0.75, 7750}, {0.8, 5500}, {0.86, 2800}, {0.9, 1000}}
	for range 20 {
		compiled, signal := following(t, memory(reject(10_000), 1000))
		w := flow.NewWindow(compiled, epoch)
		var phase, all atomic.Int64
		var begun [6]atomic.Int64 // passes, by the phase in which the call began
		var calling sync.WaitGroup
		for range 8 {
			calling.Go(func() {
				for range 2000 {
					in := phase.Load()
					if w.Take(compiled, epoch, 1) == rule.Pass {
						begun[in].Add(1)
						all.Add(1)
					}
				}
			})
		}
		var before [6]int64 // passes that had ended when the phase began; the first began before all calls
		for i := 1; i < len(levels); i++ {
			for all.Load() < min(int64(i)*1200, levels[i-1].limit) {
				runtime.Gosched() // the other goroutines make 16,000 calls
			}
			signal.Store(levels[i].shown)
			before[i] = all.Load()
			phase.Store(int64(i))
		}
		calling.Wait()
		for i, level := range levels {
			var since int64
			for j := i; j < len(begun); j++ {
				since += begun[j].Load()
			}
			if since > 0 {
				require.LessOrEqual(t, before[i]+since, level.limit, "calls that began in phase %d", i)
			}
		}
		signal.Store(0)
		for w.Take(compiled, epoch, 1) == rule.Pass {
			all.Add(1)
		}
		assert.Equal(t, int64(10_000), all.Load(), "no token was lost")
	}
}

// Calls wait in a throttle, give up and pass while the signal moves and many goroutines
// bring their own times. Passes are never closer together than the limit as written has it,
// and none is lost.
func TestThrottleKeepsItsDistanceWhileTheSignalMoves(t *testing.T) {
	t.Parallel()
	compiled, signal := following(t, memory(throttle(1000, time.Second), 100))
	q := flow.NewQueue(compiled, epoch)
	var now atomic.Int64
	var mu sync.Mutex
	var passes []int64
	var calling sync.WaitGroup
	for c := range 8 {
		calling.Go(func() {
			for i := range 300 {
				if c == 0 {
					signal.Store([]float64{0, 0.8, 0.9, 0.75}[i%4])
				}
				w := unwoken()
				at := func() clock.Instant { return epoch.Add(time.Duration(now.Load())) }
				turn, decision := q.Join(compiled, at(), 1, time.Hour, w)
				for decision == rule.Wait {
					now.Add(int64(time.Millisecond) / 5)
					turn, _, decision = q.Poll(at(), w)
				}
				if decision == rule.Pass {
					mu.Lock()
					passes = append(passes, int64(turn.Time()))
					mu.Unlock()
				}
			}
		})
	}
	calling.Wait()
	slices.Sort(passes)
	require.Greater(t, len(passes), 100)
	for i := range passes[1:] {
		require.GreaterOrEqual(t, passes[i+1]-passes[i], int64(time.Millisecond)-1)
	}
	assert.NoError(t, q.CheckWaiters(0))
}
