package sharing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/sharing/ask"
)

// jumps are how the clock of a server jumps: by hours, or at a failover to a server whose clock
// is another one.
var jumps = []time.Duration{3 * time.Hour, 5 * time.Second, 300 * ms, -300 * ms, -5 * time.Second, -3 * time.Hour}

// afterJump is what passed of a limit of 100 per second since the clock of the store jumped.
type afterJump struct {
	name   string
	passes []int // by the millisecond
}

// check holds what passed to the promise: the longest time without a pass, and how much more
// passed than the limit allows. In overload no more is lost than in that time.
func (a *afterJump) check(t *testing.T, isOverload bool, longest time.Duration, most int) {
	t.Helper()
	total, gap, worst, extra := 0, 0, 0, 0
	for i, n := range a.passes {
		total += n
		if gap++; n > 0 {
			gap = 0
		}
		worst = max(worst, gap)
		extra = max(extra, total-(i+1)/10)
	}
	assert.LessOrEqual(t, time.Duration(worst)*ms, longest, "%s: the longest time in which all is refused", a.name)
	assert.LessOrEqual(t, extra, most, "%s: more than the limit", a.name)
	if isOverload {
		missing := int((longest + 200*ms) / (10 * ms))
		assert.GreaterOrEqual(t, total, len(a.passes)/10-missing, "%s: less than the limit", a.name)
	}
}

// However the clock of the store jumps, nothing is refused for much longer than a window, and no
// more passes than a limit once too often.
func TestLeasesOutliveAClockThatJumps(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit, instances = 100, 4
	for _, window := range longtest.Of([]time.Duration{time.Second}, []time.Duration{time.Second, 10 * time.Second}) {
		tokens := limit * window.Seconds()
		const debts, leases = 3 * instances, limit // of a second, at most
		for mode, may := range map[fleet.Mode]struct {
			longest time.Duration
			more    int
		}{
			// A bucket is cut off at a second, and the next request comes soon.
			fleet.ModeLease: {1200 * ms, int(tokens)/10 + leases + debts},
			// What was counted leaves the window. A window begins with its limit, too.
			fleet.ModeWindow: {window, 2*int(tokens) + debts},
		} {
			for _, load := range []float64{2, .6} {
				for _, jump := range jumps {
					for _, isEmpty := range []bool{false, true} { // the state was lost, too
						terms := fleet.Terms{Key: "flow/a", Limit: tokens, Window: window, Burst: tokens / 10, Buckets: 10}
						w := newWorld(1, 2*ms)
						w.join(terms, mode, fleet.OutageLast, even(instances, load*limit)...)
						w.run(3 * window)
						at := w.clock.Now().Sub(w.start)
						w.store.Shift(jump)
						if isEmpty {
							w.store.Flush()
						}
						w.run(5 * window)
						a := afterJump{
							name:   fmt.Sprintf("%s, window %v, load %v, jump %v, empty %t", mode, window, load, jump, isEmpty),
							passes: make([]int, 5*window/ms),
						}
						for i := range a.passes {
							a.passes[i], _ = w.total(at+time.Duration(i)*ms, at+time.Duration(i+1)*ms)
						}
						a.check(t, load > 1, may.longest, may.more)
					}
				}
			}
		}
	}
}

func TestAskersOutliveAClockThatJumps(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit = 100
	for _, window := range []time.Duration{time.Second, 10 * time.Second} {
		tokens := limit * window.Seconds()
		for operation, may := range map[fleet.Operation]struct {
			longest time.Duration
			more    int
		}{
			// A denial from before the jump holds for a window at most, and then what was counted.
			fleet.AskFixedWindow: {2 * window, 2 * int(tokens)},
			fleet.AskSlidingLog:  {2 * window, 2 * int(tokens)},
			fleet.AskTokenBucket: {1100 * ms, int(tokens)/10 + 1},
			fleet.AskThrottle:    {1100 * ms, int(tokens)/10 + 1},
		} {
			for _, jump := range jumps {
				s := newStepped(t)
				terms := fleet.Terms{Key: "flow/a", Limit: tokens, Window: window, Burst: tokens / 10, Buckets: 1}
				asker := s.member.Asker(terms, operation, fleet.OutageLast)
				calls := func(d time.Duration) afterJump {
					a := afterJump{name: fmt.Sprintf("operation %d, window %v, jump %v", operation, window, jump)}
					for end := s.now().Add(d); s.now() < end; s.clock.Advance(ms) {
						passed := 0
						asker.Ask(s.now(), 1, func(answer ask.Answer) {
							if answer.Allowed {
								passed++
							}
						})
						s.step()
						a.passes = append(a.passes, passed)
					}
					return a
				}
				calls(3*window + 300*ms)
				s.store.Shift(jump)
				a := calls(5 * window)
				a.check(t, true, may.longest, may.more)
			}
		}
	}
}
