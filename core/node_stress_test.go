package core_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/stat"
)

// atOnce runs two functions at the same time, the second a little later than the
// first.
func atOnce(later int, first, second func()) {
	var waiting atomic.Int32
	meet := func() {
		waiting.Add(1)
		for spins := 0; waiting.Load() < 2; spins++ {
			if spins > 2000 { // there may be one processor only
				runtime.Gosched()
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		meet()
		first()
	})
	meet()
	for range later {
		waiting.Load()
	}
	second()
	wg.Wait()
}

// The first failure of a node is neither lost nor put into another second, when
// somebody else opens the next second in that moment, whichever second it is.
func TestTheFirstFailureOfANodeIsCountedInItsSecond(t *testing.T) {
	for _, second := range []int64{0, 1, 2048} {
		lost, misplaced := 0, 0
		for i := range longtest.Short(2000, 300) {
			var n leap.Node
			at := clock.Instant(second * int64(time.Second))
			n.Pass(at, 1)
			n.Pass(at, 1)
			atOnce(i%200, func() { n.Done(at, at, true) }, func() { n.Pass(at.Add(time.Second), 1) })
			if n.Totals().Failed != 1 {
				lost++
			}
			n.Pass(at.Add(2*time.Second), 1)
			if n.Second(second).Failed != 1 {
				misplaced++
			}
		}
		assert.Zero(t, lost, "second %d", second)
		assert.Zero(t, misplaced, "second %d", second)
	}
}

// The longest response time of a second stays when the second ends just then.
func TestTheLongestResponseTimeIsOfItsSecond(t *testing.T) {
	lost, misplaced := 0, 0
	for i := range longtest.Short[int64](3000, 500) {
		var n leap.Node
		at := clock.Instant((1_700_000_000 + i) * int64(time.Second))
		n.Block(at, 1)
		atOnce(int(i)%200, func() { n.Done(at.Add(-time.Second), at, false) }, func() { n.Block(at.Add(time.Second), 1) })
		if n.Second(1_700_000_000+i).MaxResponseTime != time.Second {
			lost++
		}
		if n.Second(1_700_000_001+i).MaxResponseTime != 0 {
			misplaced++
		}
	}
	assert.Zero(t, lost)
	assert.Zero(t, misplaced)
}

// Events are counted in their own second whatever the gaps between them, also
// those after which the tags of seconds come again, and whatever comes late.
func TestANodeCountsInTheRightSecondAfterAnyGap(t *testing.T) {
	gaps := []int64{0, 1, 30, 59, 60, 61, 2047, 2048, 2049, 4096, 1 << 20, 1 << 26}
	rapid.Check(t, func(t *rapid.T) {
		var n leap.Node
		second := rapid.SampledFrom([]int64{0, 1, 2048, 1_700_000_000}).Draw(t, "start")
		want := map[int64]*stat.Second{}
		of := func(s int64) *stat.Second {
			if want[s] == nil {
				want[s] = new(stat.Second)
			}
			return want[s]
		}
		var totals stat.Second
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			at := second
			if rapid.Bool().Draw(t, "moves on") {
				second += rapid.SampledFrom(gaps).Draw(t, "gap")
				at = second
			} else if late := rapid.SampledFrom(gaps).Draw(t, "late"); late <= at {
				at -= late
			}
			now := clock.Instant(at * int64(time.Second))
			s := of(at)
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0:
				n.Pass(now, 3)
				s.Passed++
				totals.Passed++
			case 1:
				n.Block(now, 4)
				s.Blocked++
				totals.Blocked++
			case 2:
				n.Done(now.Add(-7*time.Millisecond), now, true)
				s.Completed++
				s.Failed++
				s.ResponseTime += 7 * time.Millisecond
				s.MaxResponseTime = 7 * time.Millisecond
				totals.Completed++
				totals.Failed++
			case 3:
				n.Pass(now, 5)
				n.TakeBack(now, 5)
			}
			second = max(second, at)
			for s, w := range want {
				if s <= second-leap.KeptSeconds || s > second {
					delete(want, s)
					continue
				}
				got := n.Second(s)
				got.Start, got.MaxInFlight = 0, 0
				require.Equal(t, *w, got, "second %d, present %d", s, second)
			}
			sum := n.Totals()
			require.Equal(t, []uint64{totals.Passed, totals.Blocked, totals.Completed, totals.Failed},
				[]uint64{sum.Passed, sum.Blocked, sum.Completed, sum.Failed})
			require.Equal(t, []uint64{3 * totals.Passed, 4 * totals.Blocked}, []uint64{sum.PassedTokens, sum.BlockedTokens})
		}
	})
}

// Late and early callers, rollovers, long gaps and readers at once lose nothing.
func TestANodeIsExactUnderLeapsOfTime(t *testing.T) {
	const callers = 32
	calls := longtest.Short(4000, 800)
	for _, step := range []time.Duration{time.Second, 2048 * time.Second, 4096 * time.Second, 2047*time.Second + 999*time.Millisecond} {
		var n leap.Node
		var now atomic.Int64
		var wg, readers sync.WaitGroup
		done := make(chan struct{})
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				assert.GreaterOrEqual(t, n.InFlight(), int64(0))
				for _, s := range n.Minute(clock.Instant(now.Load())) {
					assert.LessOrEqual(t, s.Passed, uint64(callers*calls))
					assert.LessOrEqual(t, s.MaxInFlight, uint64(callers))
				}
			}
		})
		for c := range callers {
			wg.Go(func() {
				for i := range calls {
					if i%16 == 0 && c%8 == 0 {
						now.Add(int64(step))
					}
					at := clock.Instant(now.Load())
					if i%3 == 0 {
						n.Block(at, 1000)
						continue
					}
					n.Pass(at, 1<<30)
					if i%3 == 1 {
						n.TakeBack(at, 1<<30)
						continue
					}
					n.BeginWait()
					n.EndWait(at, at)
					n.Done(at, at.Add(time.Microsecond), i%2 == 0)
				}
			})
		}
		wg.Wait()
		close(done)
		readers.Wait()
		s := n.Totals()
		third := uint64(callers * calls / 3)
		assert.InDelta(t, third, s.Blocked, callers)
		assert.Equal(t, s.Passed, s.Completed, "step %v", step)
		assert.Equal(t, s.Passed<<30, s.PassedTokens, "step %v", step)
		assert.Equal(t, s.Blocked*1000, s.BlockedTokens, "step %v", step)
		assert.Equal(t, s.Passed, s.Waited)
		assert.EqualValues(t, callers*calls, s.Blocked+s.Passed+uint64(callers*((calls+1)/3)))
		assert.Zero(t, s.InFlight)
		assert.Zero(t, s.Waiting)
	}
}
