package sharing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
)

// While instances have different limits, those with the lower one get their part of it, although the
// others use more than it is, and all together pass no more than the greater one.
func TestInstancesWithALowerLimitPassTheirPartOfIt(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const before, after, window = 4000, 1000, 2 * time.Second
	for name, join := range map[string]func(w *world, limit float64, rates ...float64){
		"window": func(w *world, limit float64, rates ...float64) {
			w.join(fleet.Terms{Key: "flow/a", Limit: limit, Window: window, Buckets: 10}, fleet.ModeWindow, fleet.OutageLast, rates...)
		},
		"window fixed": func(w *world, limit float64, rates ...float64) {
			w.join(fleet.Terms{Key: "flow/a", Limit: limit, Window: window, Buckets: 1}, fleet.ModeWindow, fleet.OutageLast, rates...)
		},
		"ask fixed": func(w *world, limit float64, rates ...float64) {
			w.joinAsking(fleet.Terms{Key: "flow/a", Limit: limit, Window: window}, fleet.AskFixedWindow, fleet.OutageLast, rates...)
		},
		"ask log": func(w *world, limit float64, rates ...float64) {
			w.joinAsking(fleet.Terms{Key: "flow/a", Limit: limit, Window: window}, fleet.AskSlidingLog, fleet.OutageLast, rates...)
		},
	} {
		for _, updated := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s/%d of 8", name, updated), func(t *testing.T) {
				t.Parallel()
				const instances, from, to = 8, 6 * time.Second, 14 * time.Second
				w := newWorld(7, 2*ms)
				join(w, before, even(instances-updated, 4000*float64(instances-updated)/instances)...)
				w.run(2 * time.Second)
				join(w, after, even(updated, 4000*float64(updated)/instances)...)
				w.run(to - 2*time.Second)
				windows := (to - from).Seconds() / window.Seconds()
				for at, passed := range w.shares(from, to)[instances-updated:] {
					part := after * windows / instances
					assert.GreaterOrEqual(t, float64(passed), .75*part, "instance %d", at)
				}
				for begin := from; begin < to; begin += window {
					passed, _ := w.total(begin, begin+window)
					assert.LessOrEqual(t, passed, before*101/100, "window of %v", begin)
				}
			})
		}
	}
}

// A bucket of the same burst takes longer to fill at a lower limit: the least of the bursts counts, or those with the
// lower limit would leave nothing to the others.
func TestInstancesWithAnyLimitOfABucketPassWhileItIsRolledOut(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const before, instances, from, to = 1000, 8, 4 * time.Second, 10 * time.Second
	for name, join := range map[string]func(w *world, terms fleet.Terms, rates ...float64){
		"lease": func(w *world, terms fleet.Terms, rates ...float64) {
			w.join(terms, fleet.ModeLease, fleet.OutageLast, rates...)
		},
		"ask": func(w *world, terms fleet.Terms, rates ...float64) {
			w.joinAsking(terms, fleet.AskTokenBucket, fleet.OutageLast, rates...)
		},
	} {
		for _, after := range []float64{250, 500, 2000} {
			for _, updated := range longtest.Of([]int{1, 4}, []int{1, 4, 7}) {
				t.Run(fmt.Sprintf("%s/%.0f/%d of 8", name, after, updated), func(t *testing.T) {
					t.Parallel()
					w := newWorld(7, ms)
					terms := func(limit float64) fleet.Terms {
						return fleet.Terms{Key: "flow/a", Limit: limit, Window: time.Second, Burst: 100}
					}
					join(w, terms(before), even(instances-updated, 3000*float64(instances-updated)/instances)...)
					w.run(2 * time.Second)
					join(w, terms(after), even(updated, 3000*float64(updated)/instances)...)
					w.run(to - 2*time.Second)
					for at, passed := range w.shares(from, to) {
						part := min(before, after) * (to - from).Seconds() / instances
						assert.GreaterOrEqual(t, float64(passed), .85*part, "instance %d", at)
					}
					passed, _ := w.total(from, to)
					assert.LessOrEqual(t, float64(passed), 1.01*max(before, after)*(to-from).Seconds())
					assert.GreaterOrEqual(t, float64(passed), .97*min(before, after)*(to-from).Seconds())
				})
			}
		}
	}
}

// When all have the lower limit, all together pass it, whatever their demand.
func TestLimitHoldsWhenAllInstancesHaveTheLowerOne(t *testing.T) {
	t.Parallel()
	terms := func(limit float64) fleet.Terms {
		return fleet.Terms{Key: "flow/a", Limit: limit, Window: time.Second, Buckets: 10}
	}
	for _, mode := range []fleet.Mode{fleet.ModeWindow, fleet.ModeAsk} {
		w := newWorld(7, 2*ms)
		if mode == fleet.ModeAsk {
			w.joinAsking(terms(400), fleet.AskSlidingLog, fleet.OutageLast, skewed(4, 800)...)
		} else {
			w.join(terms(400), mode, fleet.OutageLast, skewed(4, 800)...)
		}
		w.run(4 * time.Second)
		for _, i := range w.instances {
			if i.asker != nil {
				i.asker.Change(terms(100), fleet.AskSlidingLog, fleet.OutageLast, w.clock.Now())
			} else {
				i.budget.Change(terms(100), fleet.OutageLast, w.clock.Now())
			}
			w.run(time.Second)
		}
		w.run(12 * time.Second)
		passed, _ := w.total(10*time.Second, 20*time.Second)
		assert.InDelta(t, 1000, passed, 60, mode)
	}
}
