package shed_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func TestLowerPrioritiesAreShedFirst(t *testing.T) {
	t.Parallel()
	const n = 20_000
	for _, c := range []struct {
		share                            float64 // of all calls
		critical, normal, low, sheddable float64 // shares that are to pass
	}{
		{share: 1, critical: 1, normal: 1, low: 1, sheddable: 1},
		{share: 0.9, critical: 1, normal: 1, low: 1, sheddable: 0.75},
		{share: 0.6, critical: 1, normal: 1, low: 1, sheddable: 0},
		{share: 0.4, critical: 1, normal: 1, low: 1. / 3, sheddable: 0},
		{share: 0.2, critical: 1, normal: 0.5, low: 0, sheddable: 0},
		{share: 0.01, critical: 0.1, normal: 0, low: 0, sheddable: 0},
		{share: 0, critical: 0, normal: 0, low: 0, sheddable: 0},
	} {
		t.Run(fmt.Sprint(c.share), func(t *testing.T) {
			t.Parallel()
			s := newService(7)
			mix := []traffic{
				{rule.PriorityCritical, n / 10, 0},
				{rule.PriorityNormal, n / 5, 500},
				{rule.PriorityLow, n * 3 / 10, 500},
				{rule.PrioritySheddable, n * 4 / 10, 500},
			}
			for _, part := range mix {
				require.InDelta(t, 1.0, s.passed(part), 0, "all pass before the threshold is moved")
			}
			s.Move(s.now, c.share)
			for i, want := range []float64{c.critical, c.normal, c.low, c.sheddable} {
				assert.InDelta(t, want, s.passed(mix[i]), 0.04, "%v", mix[i].priority)
			}
		})
	}
}

func TestThresholdIsInPlaceAfterOneMove(t *testing.T) {
	t.Parallel()
	s := newService(1)
	load := traffic{rule.PriorityNormal, 5000, 1000}
	s.passed(load)
	for _, share := range []float64{0.05, 0.9, 0.3, 0.01, 1, 0.5} {
		s.Move(s.now, share)
		assert.InDelta(t, share, s.passed(load), 0.02)
	}
}

// A single caller cannot be divided by its position.
func TestSingleCallerPassesInPart(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 2, 3} {
		s := newService(3)
		load := traffic{rule.PriorityNormal, 20_000, callers}
		s.passed(load)
		for _, share := range []float64{0.1, 0.25, 0.5, 0.75} {
			s.Move(s.now, share)
			assert.InDelta(t, share, s.passed(load), 0.02, "%d callers", callers)
		}
	}
}

func TestHeavyCallerIsAccountedFor(t *testing.T) {
	t.Parallel()
	s := newService(5)
	load := []traffic{{rule.PriorityNormal, 6000, 1}, {rule.PriorityNormal, 4000, 400}} // caller-0 is in both
	for range 4 {
		for _, l := range load {
			s.passed(l)
		}
		s.Move(s.now, 0.5)
	}
	assert.InDelta(t, 0.5, 0.6*s.passed(load[0])+0.4*s.passed(load[1]), 0.02)
}

func TestPriorityOfALevelIsTheOneOfThatLevel(t *testing.T) {
	t.Parallel()
	for _, p := range rule.Priorities() {
		assert.Equal(t, p, shed.PriorityOf(p.Level()))
	}
}

// Within a level callers are served nearly always or nearly never for a while, and within
// a minute each gets its share.
func TestCallersOfALevelTakeTurns(t *testing.T) {
	t.Parallel()
	const callers, share = 1000, 1. / 3
	s := newService(11)
	load := traffic{rule.PriorityNormal, 4 * callers, callers}
	s.passed(load)
	s.Move(s.now, share)
	var seconds [callers]float64 // in which the caller is served
	var decided, changes int     // seconds of callers that are served fully or not at all, and how often that changes
	var last [callers]bool
	for second := range 60 {
		for i := range callers {
			passed := 0
			for range 4 {
				if s.call(rule.PriorityNormal, fmt.Sprintf("caller-%d", i)) != shed.Below {
					passed++
				}
			}
			seconds[i] += float64(passed) / 4
			if passed == 0 || passed == 4 {
				decided++
			}
			if second > 0 && last[i] != (passed >= 2) {
				changes++
			}
			last[i] = passed >= 2
		}
		s.now = s.now.Add(time.Second)
		s.Move(s.now, share)
	}
	assert.Greater(t, float64(decided)/(60*callers), 0.97)
	assert.Less(t, float64(changes)/callers, 2.5, "a caller is served in one stretch of a minute")
	for i, served := range seconds {
		assert.InDelta(t, 60*share, served, 4, "caller %d", i)
	}
}

func TestCallersAreNotServedByTheirNames(t *testing.T) {
	t.Parallel()
	served := func(seed uint64) (served []bool) {
		s := newService(seed)
		s.passed(traffic{rule.PriorityNormal, 1000, 100})
		s.Move(s.now, 0.5)
		for i := range 100 {
			served = append(served, s.call(rule.PriorityNormal, fmt.Sprintf("caller-%d", i)) != shed.Below)
		}
		return served
	}
	one, again := served(1), served(1)
	assert.Equal(t, one, again, "a simulation can be repeated")
	assert.NotEqual(t, one, served(2))
	random, other := served(0), served(0)
	assert.NotEqual(t, random, other, "without a seed it is random")
}

func TestAttributesOfOtherTypesTellCallersApart(t *testing.T) {
	t.Parallel()
	parts := [rule.MaxKeys]rule.Attribute{rule.String("a"), rule.Int(1)}
	others := [rule.MaxKeys]rule.Attribute{rule.String("a"), rule.Int(2)}
	s := newService(1)
	for i := range 1000 {
		c := rule.Call{Attribute: rule.Int(int64(i))}
		s.Standing(s.Load(), &c, 0)
	}
	s.Move(s.now, 0.5)
	differ := func(a, b rule.Attribute) bool {
		for second := range 60 { // at some time, one is served and the other is not
			x, y := rule.Call{Attribute: a}, rule.Call{Attribute: b}
			if s.Standing(s.Load(), &x, 0) != s.Standing(s.Load(), &y, 0) {
				return true
			}
			s.Move(epoch.Add(time.Duration(second)*time.Second), 0.5)
		}
		return false
	}
	assert.True(t, differ(rule.Int(1), rule.Int(2)))
	assert.True(t, differ(rule.Bool(true), rule.Bool(false)))
	assert.True(t, differ(rule.Composite(&parts, 2), rule.Composite(&others, 2)))
	assert.False(t, differ(rule.String("a"), rule.String("a")))
}

func TestRefusalsThatNobodyLookedAtCountAsArrivals(t *testing.T) {
	t.Parallel()
	s := newService(1)
	s.passed(traffic{rule.PriorityHigh, 1000, 100})
	for range 3000 {
		s.Refuse(rule.PriorityLow, false)
	}
	s.Move(s.now, 0.5) // 2000 of 4000 calls
	assert.InDelta(t, 1, s.passed(traffic{rule.PriorityHigh, 1000, 100}), 0)
	assert.InDelta(t, 1./3, s.passed(traffic{rule.PriorityLow, 3000, 0}), 0.05)
	refused, unseen := s.Totals()
	assert.Equal(t, uint64(3000), unseen)
	assert.Equal(t, refused, s.Refused(rule.PriorityLow))
}

func TestInactiveThresholdForgetsArrivals(t *testing.T) {
	t.Parallel()
	s := newService(1)
	s.passed(traffic{rule.PriorityLow, 10_000, 100})
	s.Refuse(rule.PriorityLow, false)
	s.Move(s.now, 0.1)
	assert.InDelta(t, 0.1, s.Share(), 0)
	s.Stop()
	assert.False(t, s.Load().Active())
	assert.InDelta(t, 1, s.Share(), 0)
	assert.Zero(t, s.RateAbove())
	s.Move(s.now, 0.1)
	assert.False(t, s.Load().Active(), "it is not moved while it is inactive")

	s.Start(s.now)
	s.passed(traffic{rule.PriorityHigh, 1000, 100})
	s.Move(s.now, 0.5)
	assert.InDelta(t, 0.5, s.passed(traffic{rule.PriorityHigh, 1000, 100}), 0.05, "low calls are of the past")
}

func TestRateAboveIsTheRateOfMoreImportantCalls(t *testing.T) {
	t.Parallel()
	s := newService(1)
	second := func(share float64) {
		assert.GreaterOrEqual(t, s.passed(traffic{rule.PriorityHigh, 1000, 0}), min(1, share*4))
		s.passed(traffic{rule.PriorityNormal, 3000, 0})
		s.now = s.now.Add(time.Second)
		s.Move(s.now, share)
	}
	second(1)
	assert.InDelta(t, 1000, s.RateAbove(), 0)
	assert.Equal(t, shed.Above, s.call(rule.PriorityHigh, ""))
	assert.Equal(t, shed.Edge, s.call(rule.PriorityNormal, ""))
	for range 20 {
		second(0.5)
	}
	assert.InDelta(t, 1000, s.RateAbove(), 1, "not what is kept of the seconds before")
	s.Move(s.now, 0.2)
	assert.InDelta(t, 0, s.RateAbove(), 0, "only high calls pass")
}

// Before a limit, only callers and priorities are divided.
func TestThresholdBeforeALimitDividesNothingAtRandom(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{0, 1, 3, 1000} {
		s := newService(1)
		load := traffic{rule.PriorityNormal, 5000, callers}
		s.passed(load)
		for _, share := range []float64{0, 0.1, 0.5, 0.9, 1} {
			s.MoveBetween(s.now, share)
			switch passed := s.passed(load); callers {
			case 0:
				assert.InDelta(t, 1, passed, 0, "%v of callers that are not known", share)
			case 1:
				assert.InDelta(t, min(1, math.Ceil(share)), passed, 0, "%v of one caller", share)
			case 3:
				assert.InDelta(t, math.Ceil(share*3)/3, passed, 0.01, "%v of three callers", share)
			default:
				assert.InDelta(t, share, passed, 0.04, "%v of many callers", share)
			}
		}
	}
	s := newService(1)
	mix := []traffic{{rule.PriorityHigh, 1000, 0}, {rule.PriorityNormal, 1000, 0}, {rule.PriorityLow, 1000, 0}}
	for _, of := range mix {
		s.passed(of)
	}
	s.MoveBetween(s.now, 0.5)
	assert.InDelta(t, 1, s.passed(mix[1]), 0, "of the priority that passes in part all")
	assert.InDelta(t, 0, s.passed(mix[2]), 0, "of a lower one none")
}

// At a steady load the threshold stays where it is.
func TestSteadyLoadDoesNotMoveTheThreshold(t *testing.T) {
	t.Parallel()
	s := newService(1)
	served := make([]float64, 0, 100)
	for i := range 100 {
		high := s.passed(traffic{rule.PriorityHigh, 100, 0})
		low := s.passed(traffic{rule.PriorityLow, 200, 0})
		if i > 0 {
			require.InDelta(t, 1, high, 0)
			served = append(served, low)
		}
		s.now = s.now.Add(100 * time.Millisecond)
		s.Move(s.now, 0.5)
	}
	for i, low := range served {
		assert.InDelta(t, 0.25, low, 0.15, "window %d of 300 calls", i)
	}
}

func TestClockThatGoesBackDoesNotRotate(t *testing.T) {
	t.Parallel()
	s := newService(1)
	s.passed(traffic{rule.PriorityNormal, 1000, 100})
	for _, at := range []clock.Instant{epoch, epoch.Add(-time.Hour), 0, epoch} {
		s.Move(at, 0.5)
	}
	var served [100]bool
	differences := 0
	for round := range 2 {
		for i := range served {
			passes := s.call(rule.PriorityNormal, fmt.Sprintf("caller-%d", i)) != shed.Below
			if round == 1 && passes != served[i] {
				differences++
			}
			served[i] = passes
		}
		s.Move(epoch.Add(-time.Hour), 0.5)
	}
	assert.LessOrEqual(t, differences, 4, "some stand at the threshold")
	s.Move(epoch.Add(1000*time.Hour), 0.5)
	assert.InDelta(t, 0.5, s.passed(traffic{rule.PriorityNormal, 1000, 100}), 0.1)
}

func TestThresholdDoesNotAllocate(t *testing.T) {
	s := newService(0)
	c := rule.Call{Now: s.now, Attribute: rule.String("mobile")}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if s.Standing(s.Load(), &c, 1) == shed.Below {
			s.Refuse(rule.PriorityNormal, true)
		}
		s.Move(s.now, 0.5)
	}))
}
