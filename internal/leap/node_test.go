package leap_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

func TestNodeIsEmptyAtFirst(t *testing.T) {
	t.Parallel()
	var n leap.Node
	assert.Equal(t, stat.Totals{}, n.Totals())
	assert.True(t, n.Idle(epoch))
	minute := n.Minute(epoch)
	require.Len(t, minute, 60)
	for i, s := range minute {
		want := epoch.Add(time.Duration(i-59) * time.Second)
		assert.Equal(t, stat.Second{Start: want}, s)
	}
}

func TestNodeFollowsACall(t *testing.T) {
	t.Parallel()
	var n leap.Node
	n.BeginWait()
	assert.Equal(t, int64(1), n.Waiting())
	n.EndWait(epoch, epoch.Add(1500*time.Millisecond))
	assert.Zero(t, n.Waiting())

	passed := epoch.Add(1500 * time.Millisecond)
	n.Pass(passed, 5)
	assert.Equal(t, int64(1), n.InFlight())
	n.Done(passed, passed.Add(2*time.Second), true)
	assert.Zero(t, n.InFlight())

	totals := n.Totals()
	assert.Equal(t, uint64(1), totals.ResponseTimes.Count)
	totals.ResponseTimes = stat.Distribution{}
	assert.Equal(t, stat.Totals{
		Passed: 1, Completed: 1, Failed: 1, Waited: 1, PassedTokens: 5,
		WaitTime: 1500 * time.Millisecond, ResponseTime: 2 * time.Second,
	}, totals)

	second := epoch.Time().Unix()
	assert.Equal(t, stat.Second{Start: epoch}, n.Second(second))
	assert.Equal(t, stat.Second{Start: epoch.Add(time.Second), Passed: 1, Waited: 1, MaxInFlight: 1}, n.Second(second+1))
	assert.Equal(t, stat.Second{
		Start: epoch.Add(3 * time.Second), Completed: 1, Failed: 1,
		ResponseTime: 2 * time.Second, MaxResponseTime: 2 * time.Second,
	}, n.Second(second+3), "a call ends in the second in which it ends")
}

func TestNodeTakesBackAPass(t *testing.T) {
	t.Parallel()
	for after := range 100 * time.Second / time.Second {
		var n leap.Node
		n.Pass(epoch, 2)
		n.Pass(epoch, 3)
		n.Block(epoch.Add(after*time.Second), 7) // the node goes on to that second
		n.TakeBack(epoch, 3)
		assert.Equal(t, int64(1), n.InFlight())
		assert.EqualValues(t, 2, n.Totals().PassedTokens)
		assert.EqualValues(t, 7, n.Totals().BlockedTokens)
		assert.EqualValues(t, 1, n.Totals().Passed)
		if after < leap.KeptSeconds {
			assert.EqualValues(t, 1, n.Second(epoch.Time().Unix()).Passed, "after %d s", after)
		}
		n.Done(epoch, epoch.Add(after*time.Second), false)
		assert.Zero(t, n.InFlight())
	}
}

func TestNodeCountsLateEventsInTheirSecond(t *testing.T) {
	t.Parallel()
	var n leap.Node
	now := epoch.Add(3 * time.Second)
	n.Pass(now, 1)
	n.Pass(epoch, 1)
	n.Done(epoch, epoch.Add(time.Millisecond), true)
	n.Block(epoch.Add(-100*time.Second), 1) // too late to be remembered
	assert.Equal(t, stat.Second{
		Start: epoch, Passed: 1, Completed: 1, Failed: 1,
		ResponseTime: time.Millisecond, MaxResponseTime: time.Millisecond,
	}, n.Second(epoch.Time().Unix()))
	assert.EqualValues(t, 1, n.Second(now.Time().Unix()).Passed)
	totals := n.Totals()
	assert.EqualValues(t, 2, totals.Passed)
	assert.EqualValues(t, 1, totals.Blocked)
	assert.EqualValues(t, 1, totals.InFlight)
}

func TestSumsThroughASecondHaveWhatWasCountedLate(t *testing.T) {
	t.Parallel()
	var n leap.Node
	at := func(s int) clock.Instant { return epoch.Add(time.Duration(s) * time.Second) }
	through := func(s int) stat.Second { return n.Through(at(s).Time().Unix()) }
	n.Pass(at(0), 1)
	n.Pass(at(2), 1)
	n.Block(at(2), 1)
	assert.EqualValues(t, 1, through(0).Passed)
	assert.EqualValues(t, 1, through(1).Passed)
	assert.EqualValues(t, 2, through(2).Passed)
	n.Pass(at(0), 1)
	n.Done(at(0), at(1), true)
	n.Block(at(-100), 1)
	assert.Equal(t, stat.Second{Start: at(0), Passed: 2, Blocked: 1, MaxInFlight: 1}, through(0))
	assert.Equal(t, stat.Second{
		Start: at(1), Passed: 2, Blocked: 1, Completed: 1, Failed: 1, ResponseTime: time.Second, MaxResponseTime: time.Second,
	}, through(1))
	assert.EqualValues(t, 3, through(2).Passed)
	assert.EqualValues(t, 2, through(2).Blocked)
	assert.EqualValues(t, 3, through(99).Passed)
	n.Pass(at(200), 1)
	assert.EqualValues(t, 3, through(1).Passed, "of what came later, only the last minute is left out")
	n.TakeBack(at(200), 1)
	assert.EqualValues(t, 3, through(300).Passed)
}

// What is more than the word of a tally holds is counted counters it.
func TestNodeCountsWithoutBoundInASecond(t *testing.T) {
	t.Parallel()
	var n leap.Node
	const calls = 3_000_000
	for range calls {
		n.Pass(epoch, 1)
	}
	assert.EqualValues(t, calls, n.Second(epoch.Time().Unix()).Passed)
	assert.EqualValues(t, calls, n.Second(epoch.Time().Unix()).MaxInFlight)
	for range 10 {
		n.Done(epoch.Add(-24*time.Hour), epoch, false)
		n.Done(epoch.Add(-time.Hour), epoch, false)
	}
	s := n.Second(epoch.Time().Unix())
	assert.EqualValues(t, 20, s.Completed)
	assert.Equal(t, 250*time.Hour, s.ResponseTime)
	n.Block(epoch.Add(time.Second), 1)
	s = n.Second(epoch.Time().Unix())
	assert.EqualValues(t, calls, s.Passed)
	assert.Equal(t, 250*time.Hour, s.ResponseTime)
	assert.EqualValues(t, calls-20, n.InFlight())
}

func TestNodeRefusedCall(t *testing.T) {
	t.Parallel()
	var n leap.Node
	n.Block(epoch, 1)
	assert.Equal(t, stat.Totals{Blocked: 1, BlockedTokens: 1}, n.Totals())
	assert.Equal(t, uint64(1), n.Second(epoch.Time().Unix()).Blocked)
}

func TestNodeIsIdleAMinuteAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	for name, happen := range map[string]func(n *leap.Node){
		"passed":  func(n *leap.Node) { n.Pass(epoch, 1); n.Done(epoch, epoch, false) },
		"blocked": func(n *leap.Node) { n.Block(epoch, 1) },
		"ended":   func(n *leap.Node) { n.Pass(epoch.Add(-time.Hour), 1); n.Done(epoch.Add(-time.Hour), epoch, false) },
		"waited":  func(n *leap.Node) { n.BeginWait(); n.EndWait(epoch.Add(-time.Hour), epoch) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n leap.Node
			happen(&n)
			for after, want := range map[time.Duration]bool{
				0: false, time.Second: false, 59 * time.Second: false,
				60 * time.Second: true, time.Hour: true,
			} {
				assert.Equal(t, want, n.Idle(epoch.Add(after)), "after %v", after)
			}
		})
	}
}

func TestNodeIsBusyWhileACallIsUnderWay(t *testing.T) {
	t.Parallel()
	var n leap.Node
	n.Pass(epoch, 1)
	assert.False(t, n.Idle(epoch.Add(24*time.Hour)))
	n.Done(epoch, epoch, false)
	assert.True(t, n.Idle(epoch.Add(24*time.Hour)))
	n.BeginWait()
	assert.False(t, n.Idle(epoch.Add(24*time.Hour)))
}

func TestSecondMeanResponseTime(t *testing.T) {
	t.Parallel()
	assert.Zero(t, stat.Second{}.MeanResponseTime())
	assert.Equal(t, 2*time.Millisecond, stat.Second{Completed: 3, ResponseTime: 6 * time.Millisecond}.MeanResponseTime())
}

func TestNodeAllocatesNothingOnceItKnowsACall(t *testing.T) {
	var n leap.Node
	now := epoch
	call := func() {
		now = now.Add(100 * time.Millisecond)
		n.BeginWait()
		n.EndWait(now, now)
		n.Pass(now, 1)
		n.Block(now, 1)
		n.Done(now, now.Add(time.Millisecond), true)
	}
	call()
	assert.Zero(t, testing.AllocsPerRun(1000, call))
}

func ExampleNode() {
	var n leap.Node
	start := epoch
	for range 3 {
		n.Pass(start, 1)
	}
	n.Block(start, 1)
	n.Done(start, start.Add(40*time.Millisecond), false)
	n.Done(start, start.Add(60*time.Millisecond), true)

	s := n.Second(start.Time().Unix())
	fmt.Println("passed", s.Passed, "blocked", s.Blocked, "failed", s.Failed)
	fmt.Println("mean", s.MeanResponseTime(), "longest", s.MaxResponseTime)
	fmt.Println("under way", n.InFlight())
	// Output:
	// passed 3 blocked 1 failed 1
	// mean 50ms longest 60ms
	// under way 1
}
