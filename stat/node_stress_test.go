package stat_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/stat"
)

func TestNodeCountsEveryCallOfMany(t *testing.T) {
	t.Parallel()
	const callers, calls = 64, 500
	var n stat.Node
	var clockSteps atomic.Int64
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			for i := range calls {
				now := epoch.Add(time.Duration(clockSteps.Add(1)) * time.Millisecond)
				if i%2 == 0 {
					n.Block(now)
					continue
				}
				n.BeginWait()
				n.EndWait(now, now.Add(time.Microsecond))
				n.Pass(now, n.Enter())
				n.Done(now, now.Add(time.Millisecond), c%2 == 0)
			}
		})
	}
	calling.Wait()

	const half = callers * calls / 2
	totals := n.Totals()
	assert.Equal(t, uint64(half), totals.ResponseTimes.Count)
	totals.ResponseTimes = stat.Distribution{}
	assert.Equal(t, stat.Totals{
		Passed: half, Blocked: half, Completed: half, Failed: half / 2, Waited: half,
		WaitTime: half * time.Microsecond, ResponseTime: half * time.Millisecond,
	}, totals)

	// All of it took place within the 32 seconds that can be read back.
	var sum stat.Second
	for _, s := range n.Minute(epoch.Add(callers * calls * time.Millisecond)) {
		sum.Passed += s.Passed
		sum.Blocked += s.Blocked
		sum.Completed += s.Completed
		sum.ResponseTime += s.ResponseTime
		assert.LessOrEqual(t, s.MaxInFlight, uint64(callers))
	}
	assert.Equal(t, stat.Second{
		Passed: half, Blocked: half, Completed: half, ResponseTime: half * time.Millisecond,
	}, sum)
}
