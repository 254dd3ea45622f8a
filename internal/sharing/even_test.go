package sharing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
)

// shares is what each instance passed between two times.
func (w *world) shares(from, to time.Duration) (passed []int) {
	for _, i := range w.instances {
		passed = append(passed, count(i.passes, from, to))
	}
	return passed
}

// Instances with the same demand pass the same, in the long run: while the backend answers, in an
// outage, and after it.
func TestInstancesWithEvenDemandPassTheSame(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit, lasts = 1000, 30 * time.Second
	for name, join := range map[string]func(w *world, rates ...float64){
		"lease": func(w *world, rates ...float64) { w.join(bucketOf(limit), fleet.ModeLease, fleet.OutageLast, rates...) },
		"ask": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(limit), fleet.AskTokenBucket, fleet.OutageLast, rates...)
		},
	} {
		for _, load := range longtest.Of([]float64{2}, []float64{1.2, 2, 8}) {
			t.Run(fmt.Sprintf("%s/load %.1f", name, load), func(t *testing.T) {
				t.Parallel()
				w := newWorld(7, 2*ms)
				join(w, even(8, load*limit)...)
				w.run(3 * time.Second)
				for _, phase := range []string{"answers", "is down", "answers again"} {
					if w.isDown = phase == "is down"; phase == "answers again" {
						w.run(2 * time.Second)
					}
					from := w.clock.Now().Sub(w.start)
					w.run(lasts)
					passed := w.shares(from, from+lasts)
					assert.LessOrEqual(t, float64(slices.Max(passed))/float64(slices.Min(passed)), 1.2, "the backend %s: %v", phase, passed)
					assert.InDelta(t, 1, w.rate(from, from+lasts), .03, "the backend %s", phase)
				}
			})
		}
	}
}

// Of a window, instances that ask first have no more than the others in the long run. Chance alone
// makes a difference of a twentieth between 8 instances.
func TestInstancesWithEvenDemandPassTheSameOfAWindow(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const lasts, most = 30 * time.Second, 2000.0 // calls per second that are tried with two seeds
	for _, test := range []struct {
		limit   float64
		window  time.Duration
		buckets int
	}{
		{1000, time.Second, 10}, {5000, 5 * time.Second, 10}, {1000, time.Second, 1},
	} {
		for _, load := range []struct{ times, most float64 }{{1.2, 1.2}, {2, 1.2}, {8, 1.5}} {
			t.Run(fmt.Sprintf("%v in %v, %d buckets/load %.1f", test.limit, test.window, test.buckets, load.times), func(t *testing.T) {
				t.Parallel()
				perSecond := test.limit / test.window.Seconds()
				terms := fleet.Terms{Key: "flow/a", Limit: test.limit, Window: test.window, Buckets: test.buckets}
				for seed := range uint64(1 + min(1, int(most/(load.times*perSecond)))) {
					w := newWorld(7+seed, 2*ms)
					w.join(terms, fleet.ModeWindow, fleet.OutageLast, even(8, load.times*perSecond)...)
					w.run(3*time.Second + lasts)
					passed := w.shares(3*time.Second, 3*time.Second+lasts)
					ratio := float64(slices.Max(passed)) / float64(slices.Min(passed))
					assert.LessOrEqual(t, ratio, load.most, "%v", passed)
				}
			})
		}
	}
}

// Of a small limit, too, instances with even demand pass the same while the backend is down: what chance made
// of their rates when it failed does not stay.
func TestInstancesWithEvenDemandPassTheSameOfASmallLimitInAnOutage(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit, lasts = 140, 30 * time.Second
	for name, join := range map[string]func(w *world, rates ...float64){
		"lease": func(w *world, rates ...float64) { w.join(bucketOf(limit), fleet.ModeLease, fleet.OutageLast, rates...) },
		"ask": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(limit), fleet.AskTokenBucket, fleet.OutageLast, rates...)
		},
	} {
		for _, load := range []float64{2, 6} {
			t.Run(fmt.Sprintf("%s/load %.0f", name, load), func(t *testing.T) {
				t.Parallel()
				var ratios []float64
				for seed := range uint64(5) {
					w := newWorld(7+seed, 2*ms)
					join(w, even(7, load*limit)...)
					w.run(5 * time.Second)
					w.isDown = true
					w.run(lasts)
					passed := w.shares(5*time.Second, 5*time.Second+lasts)
					ratios = append(ratios, float64(slices.Max(passed))/float64(slices.Min(passed)))
					assert.InEpsilon(t, limit, 1000*w.rate(6*time.Second, 5*time.Second+lasts), .06) // the rate is of a thousand
				}
				slices.Sort(ratios)
				assert.LessOrEqual(t, ratios[2], 1.2, "%v", ratios)
			})
		}
	}
}

// An instance that has most of the demand is not held to its even share.
func TestInstanceWithMostOfTheDemandPassesMost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for name, rates := range map[string][]float64{"load 1.2": skewed(8, 1200), "load 2": skewed(8, 2000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(7, 2*ms)
			w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, rates...)
			w.run(33 * time.Second)
			assert.GreaterOrEqual(t, w.rate(3*time.Second, 33*time.Second), .97)
			for at, passed := range w.shares(3*time.Second, 33*time.Second)[1:] {
				assert.InEpsilon(t, rates[1]*30, passed, .1, "instance %d has all that it demands", at+1)
			}
		})
	}
}
