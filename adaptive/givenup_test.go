package adaptive_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/rule"
)

// Clients give up nearly all calls, later than others end. Where calls fail no later than that, they do so for another
// reason, even if all take longer than usual, and to let fewer in would help nobody.
func TestOnlyCallsThatFailLaterThanOthersEndAreThoseOfClientsWhoGaveUp(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		failed time.Duration
		state  string
	}{
		"a dependency fails and is slow": {55 * time.Millisecond, adaptive.Normal},
		"clients give up":                {80 * time.Millisecond, adaptive.Limited},
	} {
		s := newGateScene(t, adaptive.Rule{})
		s.callEvery(10*time.Millisecond, 1700, func(i int) (took time.Duration, failed bool) {
			switch {
			case i < 1000:
				return 20 * time.Millisecond, false
			case i < 1200 || i%20 == 0:
				return 65 * time.Millisecond, false
			}
			return of.failed, true
		})
		assert.Equal(t, of.state, s.limiter.Status(s.now).State, name)
	}
}

// A dependency becomes eight times as slow, fails most calls, and fails them no later than it answers the others. More
// than half of them take longer than the mean of those that do not fail took up to then.
func TestDependencyThatFailsAndIsSlowIsNotOneWhoseClientsGiveUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	s := newGateScene(t, adaptive.Rule{})
	s.callEvery(10*time.Millisecond, 3000, func(i int) (took time.Duration, failed bool) {
		if i < 1000 {
			return 20 * time.Millisecond, false
		}
		return time.Duration(160 * r.ExpFloat64() * float64(time.Millisecond)), r.Float64() < 0.8
	})
	assert.Equal(t, adaptive.Normal, s.limiter.Status(s.now).State)
}

// A dependency is slow for good, and clients give up most calls to it, however few there are at once. They are not refused
// for that: those that do not take so long would be lost, too.
func TestCallsToADependencyThatIsSlowAreNotRefusedThoughClientsGiveUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	s := newGateScene(t, adaptive.Rule{})
	const patience = 150 * time.Millisecond
	slow := func(int) (took time.Duration, failed bool) {
		took = time.Duration(250 * r.ExpFloat64() * float64(time.Millisecond))
		return min(took, patience), took >= patience
	}
	s.callEvery(10*time.Millisecond, 1000, func(int) (time.Duration, bool) { return 20 * time.Millisecond, false })
	s.callEvery(10*time.Millisecond, 1000, slow)
	before := s.gauges().shed
	s.callEvery(10*time.Millisecond, 3000, slow)
	assert.Equal(t, adaptive.Normal, s.limiter.Status(s.now).State)
	assert.Less(t, s.gauges().shed-before, 30)
}

// callEvery has a number of calls come one after the other. Of each, how says how long it takes, and whether it fails.
func (s *gateScene) callEvery(interval time.Duration, calls int, how func(i int) (took time.Duration, failed bool)) {
	type ending struct {
		at     int // calls that have come
		call   *gateCall
		failed bool
	}
	var open []ending
	var waiting []*gateCall
	for i := range calls {
		open = slices.DeleteFunc(open, func(e ending) bool {
			if e.at <= i {
				e.call.endAs(e.failed, false)
			}
			return e.at <= i
		})
		waiting = append(waiting, s.call(rule.PriorityNormal))
		waiting = slices.DeleteFunc(waiting, func(c *gateCall) bool {
			if c.waiter != nil {
				c.poll()
			}
			if c.decision == rule.Pass {
				took, failed := how(i)
				open = append(open, ending{i + int((took+interval-1)/interval), c, failed})
			}
			return c.decision != rule.Wait
		})
		s.now = s.now.Add(interval)
	}
}
