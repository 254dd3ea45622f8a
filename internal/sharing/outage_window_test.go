package sharing_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/longtest"
)

// windowKinds are the ways to count in windows, and how many parts a window has.
var windowKinds = map[string]struct {
	operation fleet.Operation // of mode ask
	buckets   int
}{
	"window, fixed": {0, 1}, "window, sliding": {0, 10},
	"ask, fixed": {fleet.AskFixedWindow, 1}, "ask, log": {fleet.AskSlidingLog, 1},
}

// passes asserts which part of a limit passed in a window.
func (w *world) passes(t *testing.T, limit float64, from, window time.Duration, least, most, phase float64) {
	t.Helper()
	passed, _ := w.total(from, from+window)
	assert.GreaterOrEqual(t, float64(passed)/limit, least, "phase %.1f, a window from %v on", phase, from)
	assert.LessOrEqual(t, float64(passed)/limit, most, "phase %.1f, a window from %v on", phase, from)
}

// isSliding says whether the limit holds for each time as long as the window, whenever it begins.
func isSliding(kind string) bool { return kind == "window, sliding" || kind == "ask, log" }

// joinWindow adds eight instances of a limit that counts in windows in a way.
func (w *world) joinWindow(kind string, limit float64, window time.Duration, onOutage fleet.OnOutage, rates ...float64) {
	k := windowKinds[kind]
	terms := fleet.Terms{Key: "flow/a", Limit: limit, Window: window, Buckets: k.buckets}
	if k.operation == 0 {
		w.join(terms, fleet.ModeWindow, onOutage, rates...)
	} else {
		w.joinAsking(terms, k.operation, onOutage, rates...)
	}
}

// Whenever in a window an outage begins, and whatever the demand: each window passes the limit,
// those in the outage, that in which it begins, and that in which it ends. Of that in which it
// begins, each instance knows the use of the others by its last answer. Of a window that slides, a fleet
// in overload passes what it may as evenly, or in the same bursts, as before.
func TestWindowPassesItsLimitInAnOutageThatBeginsAtAnyPhase(t *testing.T) {
	t.Parallel()
	skipLong(t)
	for kind := range windowKinds {
		for _, limit := range []struct {
			tokens float64
			window time.Duration
		}{{1000, time.Second}, {500, 5 * time.Second}, {2000, 20 * time.Second}} {
			for _, load := range longtest.Of([]float64{2}, []float64{2, 8}) {
				t.Run(fmt.Sprintf("%s/%.0f in %v/load %.0f", kind, limit.tokens, limit.window, load), func(t *testing.T) {
					t.Parallel()
					for _, phase := range longtest.Of([]float64{.1, .6}, []float64{.1, .3, .6, .9}) {
						w := newWorld(7, 2*ms)
						window := limit.window
						w.joinWindow(kind, limit.tokens, window, fleet.OutageLast, even(8, load*limit.tokens/window.Seconds())...)
						before := max(2, 4*time.Second/window) * window
						w.run(before + time.Duration(phase*float64(window)))
						w.isDown = true
						w.run(2 * window)
						w.isDown = false
						w.run(3 * window)
						for from := before; from < before+5*window; from += window {
							w.passes(t, limit.tokens, from, window, .8, 1.11, phase)
						}
						for from := before; isSliding(kind) && from < before+3*window; from += window / 20 {
							w.passes(t, limit.tokens, from, window, .8, 1.25, phase)
						}
					}
				})
			}
		}
	}
}

// After an outage, what passed in it is charged as of when it passed, however many calls have passed since. A fleet
// that passes evenly passes as evenly after it.
func TestLogOfManyCallsPassesItsLimitAfterAnOutage(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit, window, before = 5000, time.Second, 3 * time.Second
	for _, phase := range longtest.Of([]float64{.9}, []float64{.1, .3, .6, .9}) {
		w := newWorld(7, 2*ms)
		w.joinWindow("ask, log", limit, window, fleet.OutageLast, even(8, 2*limit)...)
		w.run(before + time.Duration(phase*float64(window)))
		w.isDown = true
		w.run(2 * window)
		w.isDown = false
		w.run(2 * window)
		for from := before; from < before+3*window; from += window / 20 {
			w.passes(t, limit, from, window, .9, 1.1, phase)
		}
	}
}

// The same holds of a limit of a dozen tokens for each instance and window. What each has used of the window in
// which the outage begins is by chance, and none makes up for its part before those that have used more have
// gone back to theirs.
func TestSmallLimitPassesItselfInAnOutageThatBeginsAtAnyPhase(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit, window, before = 100, time.Second, 6 * time.Second
	for kind := range windowKinds {
		for _, instances := range []int{8, 3} {
			for _, load := range []float64{2, 8} {
				t.Run(fmt.Sprintf("%s/%d instances/load %.0f", kind, instances, load), func(t *testing.T) {
					t.Parallel()
					for i := range longtest.Of(8, 20) {
						phase := []float64{.1, .3, .6, .9}[i%4]
						w := newWorld(uint64(7+i/4), 2*ms)
						w.joinWindow(kind, limit, window, fleet.OutageLast, even(instances, load*limit)...)
						w.run(before + time.Duration(phase*float64(window)))
						w.isDown = true
						w.run(2 * window)
						w.isDown = false
						w.run(3 * window)
						for from := before; from < before+5*window; from += window {
							w.passes(t, limit, from, window, .78, 1.13, phase)
						}
						for from := before; isSliding(kind) && from < before+3*window; from += window / 20 {
							w.passes(t, limit, from, window, .7, 1.21, phase)
						}
					}
				})
			}
		}
	}
}

// What passed in an outage that ends just before a window does is not paid in the next one.
func TestWindowIsNotChargedForTheOneBefore(t *testing.T) {
	t.Parallel()
	skipLong(t)
	for _, kind := range []string{"window, fixed", "ask, fixed"} {
		for i := range 12 {
			w := newWorld(uint64(i), 20*ms)
			const limit, window = 100, 2 * time.Second
			w.joinWindow(kind, limit, window, fleet.OutageLast, even(3, 8*limit/window.Seconds())...)
			w.run(6 * time.Second)
			w.isDown = true
			w.run(2*window - time.Duration(i+2)*25*ms)
			w.isDown = false
			w.run(3 * time.Second)
			passed, _ := w.total(10*time.Second, 12*time.Second)
			assert.GreaterOrEqual(t, passed, 93, "%s, seed %d", kind, i)
		}
	}
}

// A store that has lost what it knew of a window tells each instance that it is nearly alone: nothing is learnt of
// that for an outage that follows.
func TestStoreThatHasLostAWindowTellsNothingOfParts(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"window, fixed", "ask, fixed"} {
		w := newWorld(3, ms)
		w.joinWindow(kind, 1000, time.Second, fleet.OutageLast, even(8, 3000)...)
		w.run(8170 * ms)
		w.store.Flush()
		w.run(40 * ms)
		w.refusal = errOtherType
		w.run(3 * time.Second)
		w.passes(t, 1000, 9*time.Second, time.Second, .9, 1.05, 0)
		w.passes(t, 1000, 10*time.Second, time.Second, .9, 1.05, 0)
	}
}

// Instances with the same demand have parts of the same size for as long as an outage lasts, though those that ask
// first have more of a window for some seconds while the backend answers.
func TestInstancesWithEvenDemandPassTheSameInAnOutage(t *testing.T) {
	t.Parallel()
	for kind := range windowKinds {
		for _, load := range longtest.Of([]float64{3}, []float64{2, 3, 5}) {
			t.Run(fmt.Sprintf("%s/load %.0f", kind, load), func(t *testing.T) {
				t.Parallel()
				w := newWorld(7, 2*ms)
				w.joinWindow(kind, 1000, time.Second, fleet.OutageLast, even(8, load*1000)...)
				const from, lasts = 20 * time.Second, 15 * time.Second
				w.run(from)
				w.isDown = true
				w.run(lasts)
				passed := w.shares(from, from+lasts)
				assert.LessOrEqual(t, float64(slices.Max(passed))/float64(slices.Min(passed)), 1.2, "%v", passed)
				assert.InDelta(t, 1, w.rate(from, from+lasts), .05)
			})
		}
	}
}

var errOtherType = errors.New("WRONGTYPE somebody else uses the key")

// What passes in an outage of one limit, with a store that refuses its requests or does not answer
// them, is paid once: after it, the limit passes as before.
func TestOutageOfOneLimitIsPaidOnce(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]func(w *world, rates ...float64){
		"lease":  func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, rates...) },
		"window": func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeWindow, fleet.OutageLast, rates...) },
		"ask, log": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(1000), fleet.AskSlidingLog, fleet.OutageLast, rates...)
		},
		"ask, bucket": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(1000), fleet.AskTokenBucket, fleet.OutageLast, rates...)
		},
	} {
		for failure, fail := range map[string]func(w *world, fails bool){
			"refused": func(w *world, fails bool) {
				w.refusal = nil
				if fails {
					w.refusal = errOtherType
				}
			},
			"deaf": func(w *world, fails bool) { w.isDeaf = fails },
		} {
			t.Run(name+"/"+failure, func(t *testing.T) {
				t.Parallel()
				w := newWorld(7, 2*ms)
				join(w, even(8, 2000)...)
				w.run(5 * time.Second)
				fail(w, true)
				w.run(3 * time.Second)
				fail(w, false)
				const back = 8 * time.Second
				w.run(3 * time.Second)
				assert.GreaterOrEqual(t, w.rate(back, back+time.Second), .8, "the first second")
				assert.LessOrEqual(t, w.rate(back, back+time.Second), 1.15, "the first second")
				assert.InDelta(t, 1, w.rate(back+time.Second, back+3*time.Second), .1)
			})
		}
	}
}

// What an outage let pass beyond the limit is not made up for.
func TestLimitGoesOnAtOnceAfterAnOpenOutage(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]func(w *world, rates ...float64){
		"lease":  func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageOpen, rates...) },
		"window": func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeWindow, fleet.OutageOpen, rates...) },
		"ask, log": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(1000), fleet.AskSlidingLog, fleet.OutageOpen, rates...)
		},
		"ask, bucket": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(1000), fleet.AskTokenBucket, fleet.OutageOpen, rates...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(7, 2*ms)
			join(w, even(8, 4000)...)
			w.run(5 * time.Second)
			w.isDown = true
			w.run(2 * time.Second)
			w.isDown = false
			w.run(3 * time.Second)
			assert.InDelta(t, 1, w.rate(7500*ms, 8500*ms), .25, "half a second after it")
			assert.InDelta(t, 1, w.rate(8*time.Second, 10*time.Second), .1, "two windows, that repeat their bursts")
		})
	}
}

// An instance that starts while the backend does not answer has its share of the instances that
// are expected, for which the program has to say how many.
func TestInstanceThatStartsInAnOutagePassesItsShareOfThoseExpected(t *testing.T) {
	t.Parallel()
	for name, join := range map[string]func(w *world, rates ...float64){
		"lease":  func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, rates...) },
		"window": func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeWindow, fleet.OutageLast, rates...) },
		"ask": func(w *world, rates ...float64) {
			w.joinAsking(bucketOf(1000), fleet.AskSlidingLog, fleet.OutageShare, rates...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(7, 2*ms)
			w.expected = 8
			w.isDown = true
			join(w, even(8, 4000)...)
			w.run(6 * time.Second)
			assert.InDelta(t, 1, w.rate(2*time.Second, 6*time.Second), .1)
			assert.Zero(t, w.instances[0].member.Status(w.clock.Now()).Instances, "nobody has told")
			w.isDown = false
			w.run(3 * time.Second)
			assert.InDelta(t, 1, w.rate(7*time.Second, 9*time.Second), .1)
		})
	}
}

// A server whose answers take about as long as the timeout grants much that is lost, as the answer comes too late. So
// what decides in an outage goes on until it has answered twice in a row. Of mode ask, instances that are in an
// outage pass their part beside others that have all that the server grants.
func TestServerAboutAsSlowAsTheTimeoutPassesMostOfTheLimit(t *testing.T) {
	t.Parallel()
	skipLong(t)
	const limit, window, before = 5000, 5 * time.Second, 10 * time.Second
	check := func(name string, most float64, join func(w *world, rates ...float64)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, roundTrip := range []time.Duration{110 * ms, 115 * ms} {
				w := newWorld(7, 2*ms)
				w.dropsLate = true
				join(w, even(8, 2000)...)
				w.run(before)
				w.roundTrip = roundTrip
				w.run(3 * window)
				w.roundTrip = 2 * ms
				w.run(window)
				for from := before; from < before+4*window; from += window {
					w.passes(t, limit, from, window, .7, most, 0)
				}
			}
		})
	}
	check("lease", 1.1, func(w *world, rates ...float64) { w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, rates...) })
	for kind, window := range windowKinds {
		most := 1.1
		if window.operation != 0 {
			most = 1.25
		}
		check(kind, most, func(w *world, rates ...float64) { w.joinWindow(kind, limit, 5*time.Second, fleet.OutageLast, rates...) })
	}
}
