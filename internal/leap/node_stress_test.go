package leap_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/stat"
)

func TestNodeCountsEveryCallOfMany(t *testing.T) {
	t.Parallel()
	const callers, calls = 64, 500
	var n leap.Node
	var rules []*leap.Refusals
	for range 8 {
		own := n.Refusals()
		rules = append(rules, &own)
	}
	var clockSteps atomic.Int64
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			for i := range calls {
				now := epoch.Add(time.Duration(clockSteps.Add(1)) * time.Millisecond)
				if i%2 == 0 {
					rules[c%len(rules)].Block(now, 1)
					continue
				}
				n.BeginWait()
				n.EndWait(now, now.Add(time.Microsecond))
				n.Pass(now, 1)
				n.Done(now, now.Add(time.Millisecond), c%2 == 0)
			}
		})
	}
	calling.Wait()

	const half = callers * calls / 2
	for i, rule := range rules {
		assert.EqualValues(t, half/len(rules), rule.Total(), "rule %d", i)
	}
	totals := n.Totals()
	assert.Equal(t, uint64(half), totals.ResponseTimes.Count)
	totals.ResponseTimes = stat.Distribution{}
	assert.Equal(t, stat.Totals{
		Passed: half, Blocked: half, Completed: half, Failed: half / 2, Waited: half,
		PassedTokens: half, BlockedTokens: half,
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

// Whoever comes when a second has just ended still counts in it, and whoever
// comes first opens the next: no event is in a second that is not its own.
func TestNodeCountsEveryEventInItsSecond(t *testing.T) {
	t.Parallel()
	const callers, calls = 16, 5000
	var n leap.Node
	rule := n.Refusals()
	var clock atomic.Int64
	want := make([][40]stat.Second, callers)
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			for range calls {
				// Read, and used while others move on: about 2000 events a second.
				now := epoch.Add(time.Duration(clock.Add(1)) * 450 * time.Microsecond)
				s := &want[c][now.Sub(epoch)/time.Second]
				switch c % 4 {
				case 0:
					rule.Block(now, 1)
					s.Blocked++
				case 1:
					n.Pass(now, 1)
					s.Passed++
				default:
					n.Pass(now, 1)
					n.Done(now.Add(-time.Millisecond), now, true)
					s.Passed++
					s.Completed++
					s.Failed++
					s.ResponseTime += time.Millisecond
					s.MaxResponseTime = time.Millisecond
				}
			}
		})
	}
	calling.Wait()
	for i := range want[0] {
		got := n.Second(epoch.Time().Unix() + int64(i))
		sum := stat.Second{Start: got.Start, MaxInFlight: got.MaxInFlight}
		for c := range want {
			w := want[c][i]
			sum.Passed += w.Passed
			sum.Blocked += w.Blocked
			sum.Completed += w.Completed
			sum.Failed += w.Failed
			sum.ResponseTime += w.ResponseTime
			sum.MaxResponseTime = max(sum.MaxResponseTime, w.MaxResponseTime)
		}
		assert.Equal(t, sum, got, "second %d", i)
	}
	assert.EqualValues(t, callers/4*calls, n.InFlight())
}
