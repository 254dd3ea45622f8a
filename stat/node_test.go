package stat_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/stat"
)

func TestNodeIsEmptyAtFirst(t *testing.T) {
	t.Parallel()
	var n stat.Node
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
	var n stat.Node
	n.BeginWait()
	assert.Equal(t, int64(1), n.Waiting())
	n.EndWait(epoch, epoch.Add(1500*time.Millisecond))
	assert.Zero(t, n.Waiting())

	passed := epoch.Add(1500 * time.Millisecond)
	n.Pass(passed, n.Enter())
	assert.Equal(t, int64(1), n.InFlight())
	n.Done(passed, passed.Add(2*time.Second), true)
	assert.Zero(t, n.InFlight())

	totals := n.Totals()
	assert.Equal(t, uint64(1), totals.ResponseTimes.Count)
	totals.ResponseTimes = stat.Distribution{}
	assert.Equal(t, stat.Totals{
		Passed: 1, Completed: 1, Failed: 1, Waited: 1,
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

func TestNodeLeaveTakesBackEnter(t *testing.T) {
	t.Parallel()
	var n stat.Node
	assert.Equal(t, int64(1), n.Enter())
	assert.Equal(t, int64(2), n.Enter())
	n.Leave()
	assert.Equal(t, int64(1), n.InFlight())
	assert.Zero(t, n.Totals().Passed)
}

func TestNodeRefusedCall(t *testing.T) {
	t.Parallel()
	var n stat.Node
	n.Block(epoch)
	assert.Equal(t, stat.Totals{Blocked: 1}, n.Totals())
	assert.Equal(t, uint64(1), n.Second(epoch.Time().Unix()).Blocked)
}

func TestNodeIsIdleAMinuteAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	for name, happen := range map[string]func(n *stat.Node){
		"passed":  func(n *stat.Node) { n.Pass(epoch, n.Enter()); n.Leave() },
		"blocked": func(n *stat.Node) { n.Block(epoch) },
		"ended":   func(n *stat.Node) { n.Enter(); n.Done(epoch.Add(-time.Hour), epoch, false) },
		"waited":  func(n *stat.Node) { n.BeginWait(); n.EndWait(epoch.Add(-time.Hour), epoch) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n stat.Node
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
	var n stat.Node
	n.Pass(epoch, n.Enter())
	assert.False(t, n.Idle(epoch.Add(24*time.Hour)))
	n.Leave()
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
	var n stat.Node
	now := epoch
	call := func() {
		now = now.Add(100 * time.Millisecond)
		n.BeginWait()
		n.EndWait(now, now)
		n.Pass(now, n.Enter())
		n.Block(now)
		n.Done(now, now.Add(time.Millisecond), true)
	}
	call()
	assert.Zero(t, testing.AllocsPerRun(1000, call))
}

func ExampleNode() {
	var n stat.Node
	start := epoch
	for range 3 {
		n.Pass(start, n.Enter())
	}
	n.Block(start)
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
