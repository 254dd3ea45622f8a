package sharing_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// goal is a fleet under a steady load, and what is to be reached.
type goal struct {
	mode      fleet.Mode
	instances int
	limit     float64 // tokens per second
	load      float64 // times the limit
	isSkewed  bool    // one instance has nine tenths of it
	roundTrip time.Duration
	loss      float64

	least, greatest float64 // total of ten seconds / limit
	worst           float64 // any second / limit
	aligned         float64 // any second aligned to buckets / limit
	refused         float64 // of the calls
	decisions       float64 // calls for each request, at least

	from time.Duration // when the ten seconds begin, 2 s if 0
}

func (g goal) name() string {
	demand := "even"
	if g.isSkewed {
		demand = "skewed"
	}
	return fmt.Sprintf("%s/%d instances/%.0f a second/load %.1f %s/%v/%.0f%% lost",
		g.mode, g.instances, g.limit, g.load, demand, g.roundTrip, g.loss*100)
}

// check runs the fleet, three times if that is quick, and looks at ten seconds.
func (g goal) check(t *testing.T) {
	t.Helper()
	const runs = 3
	from := cmp.Or(g.from, 2*time.Second)
	to := from + 10*time.Second
	var passes, calls, requests, seconds float64
	for run := range uint64(runs) {
		w := newWorld(7+run, g.roundTrip)
		w.loss = g.loss
		rates := even(g.instances, g.limit*g.load)
		if g.isSkewed {
			rates = skewed(g.instances, g.limit*g.load)
		}
		w.join(bucketOf(g.limit), g.mode, fleet.OutageLast, rates...)
		w.run(from)
		before := w.requests
		w.run(to - from)
		passed, called := w.total(from, to)
		passes, calls = passes+float64(passed), calls+float64(called)
		requests, seconds = requests+float64(w.requests-before), seconds+(to-from).Seconds()
		if g.worst > 0 {
			assert.LessOrEqual(t, float64(w.worst(from, to, time.Second, time.Millisecond))/g.limit, g.worst, "any second")
		}
		if g.aligned > 0 {
			assert.LessOrEqual(t, float64(w.worst(from, to, time.Second, 100*time.Millisecond))/g.limit, g.aligned, "any aligned second")
		}
		if g.isSlow() {
			break
		}
	}
	total := passes / g.limit / seconds
	assert.GreaterOrEqual(t, total, g.least, "total")
	if g.greatest > 0 {
		assert.LessOrEqual(t, total, g.greatest, "total")
	}
	if g.refused > 0 {
		assert.LessOrEqual(t, 1-passes/calls, g.refused, "refused")
	}
	assert.LessOrEqual(t, requests/seconds/float64(g.instances), 12.0, "requests per second and member")
	assert.GreaterOrEqual(t, calls/requests, g.decisions, "decisions per request")
	t.Logf("total %.4f, refused %.4f", total, 1-passes/calls)
}

// isSlow says whether a run takes long.
func (g goal) isSlow() bool { return float64(g.instances)*10+g.limit > 1800 }

// isLarge says whether a run takes so long that make long has to do it.
func (g goal) isLarge() bool { return float64(g.instances)*10+g.limit > 2500 }

func checkAll(t *testing.T, goals []goal) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for _, g := range goals {
		if raceEnabled && g.isSlow() || g.isLarge() && !longtest.Enabled() {
			continue // slow, and nothing in it is concurrent
		}
		t.Run(g.name(), func(t *testing.T) {
			t.Parallel()
			g.check(t)
		})
	}
}

const ms = time.Millisecond

func TestFleetInOverloadPassesItsLimit(t *testing.T) {
	t.Parallel()
	skipLong(t)
	checkAll(t, []goal{
		{fleet.ModeLease, 8, 1000, 2, false, 1 * ms, 0, .99, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 1000, 2, false, 2 * ms, 0, .99, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 1000, 2, true, 2 * ms, 0, .99, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 1000, 2, false, 20 * ms, 0, .99, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 1000, 2, false, 50 * ms, 0, .99, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 100, 2, false, 2 * ms, 0, .96, 1.04, 1.15, 0, 0, 0, 0},
		{fleet.ModeLease, 8, 100, 2, true, 2 * ms, 0, .96, 1.04, 1.15, 0, 0, 0, 0},
		{fleet.ModeLease, 8, 10, 2, false, 2 * ms, 0, .9, 1.1, 1.6, 0, 0, 0, 0},
		{fleet.ModeLease, 8, 100_000, 2, false, 2 * ms, 0, .99, 1.01, 1.08, 0, 0, 1000, 0},
		{fleet.ModeLease, 8, 100_000, 2, true, 2 * ms, 0, .99, 1.01, 1.08, 0, 0, 1000, 0},
		{fleet.ModeLease, 100, 1000, 2, false, 2 * ms, 0, .99, 1.01, 1.08, 0, 0, 0, 0},
		{fleet.ModeLease, 100, 1000, 2, true, 2 * ms, 0, .99, 1.01, 1.08, 0, 0, 0, 0},
		{fleet.ModeLease, 100, 100, 2, false, 2 * ms, 0, .94, 1.04, 1.25, 0, 0, 0, 0},
		{fleet.ModeLease, 1000, 1000, 2, false, 2 * ms, 0, .94, 1.01, 1.08, 0, 0, 0, 0},

		// What is not used of a bucket of a window comes back when it ends. Tokens are usable
		// for a round trip less than a bucket.
		{fleet.ModeWindow, 8, 1000, 2, false, 2 * ms, 0, .985, 1.01, 1.05, 1.008, 0, 15, 0},
		{fleet.ModeWindow, 8, 1000, 2, true, 2 * ms, 0, .975, 1.01, 1.05, 1.008, 0, 15, 0},
		{fleet.ModeWindow, 8, 1000, 2, false, 20 * ms, 0, .98, 1.01, 1.05, 1.012, 0, 15, 0},
		{fleet.ModeWindow, 8, 1000, 2, true, 20 * ms, 0, .97, 1.01, 1.05, 1.012, 0, 15, 0},
		{fleet.ModeWindow, 8, 1000, 2, false, 50 * ms, 0, .91, 1.01, 1.05, 1.01, 0, 15, 0},
		{fleet.ModeWindow, 8, 100_000, 2, false, 2 * ms, 0, .985, 1.01, 1.02, 1.005, 0, 1000, 0},
		{fleet.ModeWindow, 100, 1000, 2, false, 2 * ms, 0, .965, 1.01, 1.05, 1.015, 0, 0, 0},
		{fleet.ModeWindow, 100, 1000, 2, true, 2 * ms, 0, .97, 1.01, 1.05, 1.015, 0, 0, 0},
	})
}

// Instances that all start within a second, under a load that was not there before, need some
// seconds until the buckets of a window are used evenly.
func TestWindowInOverloadSettles(t *testing.T) {
	t.Parallel()
	const from = 6 * time.Second
	checkAll(t, []goal{
		{fleet.ModeWindow, 8, 1000, 2, false, 2 * ms, 0, .99, 1.005, 1.05, 1.01, 0, 15, from},
		{fleet.ModeWindow, 8, 1000, 2, true, 2 * ms, 0, .99, 1.005, 1.05, 1.01, 0, 15, from},
		{fleet.ModeWindow, 8, 1000, 2, false, 20 * ms, 0, .99, 1.005, 1.05, 1.012, 0, 15, from},
		{fleet.ModeWindow, 8, 1000, 2, true, 20 * ms, 0, .99, 1.005, 1.05, 1.012, 0, 15, from},
		{fleet.ModeWindow, 100, 1000, 2, false, 2 * ms, 0, .985, 1.005, 1.05, 1.015, 0, 0, from},
		{fleet.ModeWindow, 100, 1000, 2, true, 2 * ms, 0, .98, 1.005, 1.05, 1.015, 0, 0, from},
	})
}

func TestFleetBelowItsLimitRefusesNextToNothing(t *testing.T) {
	t.Parallel()
	skipLong(t)
	checkAll(t, []goal{
		{fleet.ModeLease, 8, 1000, .8, false, 1 * ms, 0, .76, 0, 0, 0, .001, 0, 0},
		{fleet.ModeLease, 8, 1000, .8, false, 2 * ms, 0, .76, 0, 0, 0, .001, 0, 0},
		{fleet.ModeLease, 8, 1000, .8, true, 2 * ms, 0, .76, 0, 0, 0, .001, 0, 0},
		{fleet.ModeLease, 8, 1000, .8, false, 20 * ms, 0, .76, 0, 0, 0, .001, 0, 0},
		{fleet.ModeLease, 8, 1000, .8, false, 50 * ms, 0, .76, 0, 0, 0, .001, 0, 0},
		{fleet.ModeLease, 8, 1000, .8, true, 50 * ms, 0, .76, 0, 0, 0, .005, 0, 0},
		{fleet.ModeLease, 8, 100_000, .8, false, 2 * ms, 0, .79, 0, 0, 0, .001, 0, 0},
		{fleet.ModeLease, 8, 100, .8, false, 2 * ms, 0, .7, 0, 0, 0, .015, 0, 0},
		{fleet.ModeLease, 100, 1000, .8, false, 2 * ms, 0, .76, 0, 0, 0, .01, 0, 0},
		{fleet.ModeWindow, 8, 1000, .8, false, 2 * ms, 0, .76, 0, 0, 0, .002, 0, 0},
		{fleet.ModeWindow, 8, 1000, .8, true, 2 * ms, 0, .76, 0, 0, 0, .003, 0, 0},
		{fleet.ModeWindow, 8, 1000, .8, false, 20 * ms, 0, .76, 0, 0, 0, .005, 0, 0},
		{fleet.ModeWindow, 8, 1000, .8, true, 20 * ms, 0, .75, 0, 0, 0, .04, 0, 0},
		{fleet.ModeWindow, 8, 1000, .8, false, 50 * ms, 0, .76, 0, 0, 0, .005, 0, 0},
		{fleet.ModeWindow, 8, 100_000, .8, false, 2 * ms, 0, .79, 0, 0, 0, .001, 0, 0},
		{fleet.ModeWindow, 100, 1000, .8, false, 2 * ms, 0, .75, 0, 0, 0, .03, 0, 0},
		{fleet.ModeWindow, 100, 1000, .8, true, 2 * ms, 0, .73, 0, 0, 0, .07, 0, 0},
	})
}

// What was granted in an answer that is lost is lost, too.
func TestLostAnswersLoseTokensAndMintNone(t *testing.T) {
	t.Parallel()
	checkAll(t, []goal{
		{fleet.ModeLease, 8, 1000, 2, false, 2 * ms, .01, .98, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 1000, 2, false, 50 * ms, .01, .98, 1.01, 1.08, 0, 0, 15, 0},
		{fleet.ModeLease, 8, 1000, .8, false, 2 * ms, .01, .76, 0, 0, 0, .002, 0, 0},
		{fleet.ModeWindow, 8, 1000, 2, false, 2 * ms, .01, .96, 1.01, 1.05, 1.01, 0, 15, 0},
	})
}

func TestLostAnswerIsNoOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(3, 2*ms)
	w.loss = 0.01
	w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, even(8, 2000)...)
	w.run(10 * time.Second)
	lost := int64(0)
	for _, i := range w.instances {
		s := i.member.Status(w.clock.Now())
		lost += s.Lost
		assert.Zero(t, s.Outages)
	}
	assert.Positive(t, lost)
	assert.Empty(t, w.log.String())
}

func TestSparseCallsPass(t *testing.T) {
	t.Parallel()
	w := newWorld(5, 2*ms)
	w.join(bucketOf(100), fleet.ModeLease, fleet.OutageLast, even(100, 20)...)
	w.run(20 * time.Second)
	passes, calls := w.total(0, 20*time.Second)
	assert.GreaterOrEqual(t, float64(passes), 0.99*float64(calls))
}

// Two instances in three have nothing to do: their goroutines sleep but for announcements.
func TestQuietMembersSleep(t *testing.T) {
	t.Parallel()
	w := newWorld(5, 2*ms)
	w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, 0, 0, 500)
	w.run(5 * time.Second)
	before := w.requests
	for _, i := range w.instances[:2] {
		now := w.clock.Now()
		assert.Greater(t, i.member.Due().Sub(now), 10*ms)
		assert.LessOrEqual(t, i.member.Due().Sub(now), exchange.AnnounceInterval)
		assert.True(t, i.budget.Idle(now))
		assert.Equal(t, 3, i.member.Status(now).Instances)
	}
	w.instances[2].rate = 0
	w.run(3 * time.Second)
	assert.Less(t, w.requests-before, 10, "unused tokens are handed back, and nothing else")
	assert.True(t, w.instances[2].budget.Idle(w.clock.Now()))
	assert.Zero(t, w.store.Len(), "nothing is used any more")
}

// An instance that demands most of a bucket gets it soon, also from an even share: after a quiet
// time, and when demand moves there from another instance.
func TestLeaseFollowsDemandThatMovesToOneInstance(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{1000, 100_000} {
		if raceEnabled && limit > 1000 {
			continue // slow, and nothing in it is concurrent
		}
		t.Run(fmt.Sprintf("%.0f a second", limit), func(t *testing.T) {
			t.Parallel()
			w := newWorld(7, 2*ms)
			w.join(bucketOf(limit), fleet.ModeLease, fleet.OutageLast, make([]float64, 8)...)
			w.run(2 * time.Second)
			start := 2 * time.Second
			for _, busy := range []int{0, 5} {
				for at, rate := range skewed(8, 2*limit) {
					w.instances[(at+busy)%8].demand(rate)
				}
				w.run(3 * time.Second)
				first, _ := w.total(start, start+time.Second)
				all, _ := w.total(start, start+3*time.Second)
				assert.GreaterOrEqual(t, float64(first)/limit, .85, "first second, instance %d has most of the demand", busy)
				assert.GreaterOrEqual(t, float64(all)/limit/3, .95, "three seconds, instance %d has most of the demand", busy)
				start += 3 * time.Second
			}
			assert.LessOrEqual(t, float64(w.worst(2*time.Second, start, time.Second, ms))/limit, 1.1)
		})
	}
}
