package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

// epoch is the start of a calendar minute, at which tests begin.
const epoch = clock.Instant(1_700_000_040 * int64(time.Second))

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }

// reject returns a rule of control reject, as a user would write it.
func reject(limit float64) flow.Rule { return flow.Rule{Resource: "r", Limit: limit} }

// throttle returns a rule of control throttle.
func throttle(limit float64, maxWait time.Duration) flow.Rule {
	return flow.Rule{Resource: "r", Limit: limit, Algorithm: flow.Throttle, MaxWait: maxWait}
}

// compile returns a rule compiled that has to be sound.
func compile(t require.TestingT, rule flow.Rule, version uint64) *flow.Compiled {
	require.Empty(t, flow.Kind().Faults(rule))
	return flow.Compile(flow.Kind().WithDefaults(rule), version)
}

// gate is a window and one caller, who has time to himself.
type gate struct {
	t        require.TestingT
	rule     flow.Rule
	compiled *flow.Compiled
	version  uint64
	window   *flow.Window
	now      clock.Instant
}

func newGate(t require.TestingT, rule flow.Rule) *gate {
	compiled := compile(t, rule, 1)
	return &gate{
		t: t, rule: flow.Kind().WithDefaults(rule), compiled: compiled, version: 1,
		window: flow.NewWindow(compiled, epoch), now: epoch,
	}
}

func (g *gate) take(n int32) rule.Decision { return g.window.Take(g.compiled, g.now, n) }

// pass makes a number of calls and returns how many of them pass.
func (g *gate) pass(calls int) (passed int) {
	for range calls {
		if g.take(1) == rule.Pass {
			passed++
		}
	}
	return passed
}

func (g *gate) wait(d time.Duration) { g.now = g.now.Add(d) }

// moveTo moves the time to so long after the epoch.
func (g *gate) moveTo(d time.Duration) { g.now = epoch.Add(d) }

// change goes over to a changed rule. The window learns of it with the next
// call.
func (g *gate) change(how func(r *flow.Rule)) {
	how(&g.rule)
	g.version++
	g.compiled = compile(g.t, g.rule, g.version)
}

// offer makes calls, evenly spread, for some seconds, and returns how many of
// each second's pass.
func (g *gate) offer(perSecond, seconds int) []int {
	passed := make([]int, seconds)
	start := g.now
	for k := range perSecond * seconds {
		g.now = start.Add(time.Duration(k) * time.Second / time.Duration(perSecond))
		passed[k/perSecond] += g.pass(1)
	}
	g.now = start.Add(time.Duration(seconds) * time.Second)
	return passed
}

// bucket returns the number of the bucket that an instant falls in.
func (g *gate) bucket(at clock.Instant) int64 { return int64(at) / int64(g.bucketLength()) }

func (g *gate) bucketLength() time.Duration { return g.rule.Window / time.Duration(g.rule.Buckets) }

// bucketStart returns when the present bucket began.
func (g *gate) bucketStart() clock.Instant {
	return clock.Instant(g.bucket(g.now) * int64(g.bucketLength()))
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// newWaiter returns a waiter and a channel that receives when it is woken.
func newWaiter() (*flow.Waiter, <-chan struct{}) {
	wake := make(chan struct{}, 1)
	return flow.NewWaiter(func() {
		select {
		case wake <- struct{}{}:
		default: // it has been woken already
		}
	}), wake
}

// unwoken returns a waiter of someone who asks anyway.
func unwoken() *flow.Waiter { return flow.NewWaiter(func() {}) }
