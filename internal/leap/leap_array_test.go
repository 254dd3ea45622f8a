package leap_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

func secondAt(i int) clock.Instant { return epoch.Add(time.Duration(i) * time.Second) }

// Numbers of every size stand counters each other, in whatever order they come, and
// a minute later others stand in their place.
func TestNodeKeepsNumbersOfAnySize(t *testing.T) {
	t.Parallel()
	sizes := []int{0, 1, 70_000, 0, 255, 256, 65_535, 65_536, 2, 0}
	times := []time.Duration{0, time.Microsecond, 300 * time.Microsecond, time.Minute, 1000 * time.Hour, 100 * 365 * 24 * time.Hour}
	var n leap.Node
	for i := range 2*leap.KeptSeconds + 7 {
		at, calls, took := secondAt(i), sizes[i%len(sizes)], times[i%len(times)].Truncate(time.Microsecond)
		for range calls {
			n.Block(at, 1)
		}
		n.Pass(at, 1)
		n.Done(at.Add(-took), at, i%7 == 0)
	}
	for i := 2*leap.KeptSeconds + 6; i > leap.KeptSeconds+6; i-- {
		took := times[i%len(times)].Truncate(time.Microsecond)
		want := stat.Second{
			Start: secondAt(i), Passed: 1, Blocked: uint64(sizes[i%len(sizes)]), Completed: 1,
			ResponseTime: took, MaxResponseTime: took, MaxInFlight: 1,
		}
		if i%7 == 0 {
			want.Failed = 1
		}
		assert.Equal(t, want, n.Second(secondAt(i).Time().Unix()), "second %d", i)
	}
}

// What comes late may need more room than its second has.
func TestLateEventsWidenTheMinute(t *testing.T) {
	t.Parallel()
	var n leap.Node
	for range 255 {
		n.Block(secondAt(0), 1)
	}
	n.Block(secondAt(1), 1)
	n.Block(secondAt(2), 1)
	n.Block(secondAt(0), 1)
	n.Done(secondAt(-60), secondAt(1), true)
	for i, want := range []stat.Second{
		{Blocked: 256},
		{Blocked: 1, Completed: 1, Failed: 1, ResponseTime: 61 * time.Second, MaxResponseTime: 61 * time.Second},
		{Blocked: 1},
	} {
		want.Start = secondAt(i)
		assert.Equal(t, want, n.Second(want.Start.Time().Unix()), "second %d", i)
	}
}

// While many count and the minute grows wider, seconds that are over are read as
// they were.
func TestReadersSeeWholeSecondsWhileTheMinuteWidens(t *testing.T) {
	t.Parallel()
	const callers, seconds = 8, 50
	calls := func(second int) int { return 1 << (second * 10 / seconds) } // of each caller
	var n leap.Node
	var over atomic.Int64 // seconds that are
	var reading sync.WaitGroup
	wrong := 0
	reading.Go(func() {
		for over.Load() < seconds {
			for s := range int(over.Load()) {
				blocked := uint64(callers * calls(s))
				completed := stat.Second{
					Start: secondAt(s), Blocked: blocked, Completed: blocked, Failed: blocked,
					ResponseTime:    time.Duration(blocked) * time.Second << (s / 4),
					MaxResponseTime: time.Second << (s / 4),
				}
				if n.Second(secondAt(s).Time().Unix()) != completed {
					wrong++
				}
			}
		}
	})
	for s := range seconds {
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() {
				for range calls(s) {
					n.Block(secondAt(s), 1)
					n.Done(secondAt(s).Add(-time.Second<<(s/4)), secondAt(s), true)
				}
			})
		}
		calling.Wait()
		over.Add(1)
	}
	reading.Wait()
	assert.Zero(t, wrong, "seconds that were read before they were written whole")
}
