package warmup_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func standard() rule {
	return rule{limit: 1000, period: 10 * time.Second, coldFactor: 3, step: time.Second}
}

func TestBucketPassesTheVectors(t *testing.T) {
	t.Parallel()
	for offered, want := range map[float64][]float64{
		2000: {333, 348, 366, 387, 412, 442, 479, 528, 594, 692, 856, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000},
		500:  {333, 348, 366, 387, 412, 442, 479, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500},
		300:  {300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300, 300},
	} {
		f := newTraffic(standard())
		for second, passes := range want {
			assert.InDelta(t, passes, f.offer(offered), 2, "%v offered, second %d", offered, second)
		}
	}
}

func TestBucketWithAFineStepFollowsTheIdealCurve(t *testing.T) {
	t.Parallel()
	r := standard()
	r.step = 100 * time.Millisecond
	f := newTraffic(r)
	for second, want := range []float64{341, 358, 378, 402, 431, 467, 514, 579, 677, 854, 1000, 1000} {
		assert.InEpsilon(t, want, f.offerFor(2000, time.Second), 0.04, "second %d", second)
	}
}

// eachRule runs a test for small and large limits, cold factors and periods.
func eachRule(t *testing.T, test func(t *testing.T, r rule)) {
	for _, limit := range []float64{0.1, 0.5, 1, 2, 3, 7, 10, 100, 1000, 1e6} {
		for _, coldFactor := range []float64{1.1, 1.5, 2, 3, 5, 10} {
			for _, period := range []time.Duration{time.Second, 10 * time.Second, 10 * time.Minute} {
				for _, step := range []time.Duration{100 * time.Millisecond, time.Second} {
					r := rule{limit, period, coldFactor, step}
					t.Run(fmt.Sprintf("%v per s, %v, factor %v, step %v", limit, period, coldFactor, step),
						func(t *testing.T) { test(t, r) })
				}
			}
		}
	}
}

// warmAfter is how long full load may take to warm a resource: the period, a
// twentieth more for what Sentinel's formulas lose in steps, four steps, and
// the time that two tokens take at the cold rate.
func (r rule) warmAfter() time.Duration {
	return r.period + r.period/20 + 4*r.step + seconds(2*r.coldFactor/r.limit)
}

func TestBucketWarmsUpUnderFullLoad(t *testing.T) {
	t.Parallel()
	eachRule(t, func(t *testing.T, r rule) {
		f := newTraffic(r)
		var took time.Duration
		for f.warmth() < 1-1e-9 && took <= r.warmAfter() {
			f.offer(2 * r.limit)
			took += r.step
		}
		assert.LessOrEqual(t, took, r.warmAfter())
	})
}

func TestBucketStaysWarmUnderFullLoad(t *testing.T) {
	t.Parallel()
	eachRule(t, func(t *testing.T, r rule) {
		f := newTraffic(r)
		f.offerFor(2*r.limit, r.warmAfter())
		tokens := max(10, 10*r.limit)
		assert.InEpsilon(t, tokens, f.offerFor(2*r.limit, seconds(tokens/r.limit)), 0.1)
	})
}

func TestBucketCoolsDownWhenIdle(t *testing.T) {
	t.Parallel()
	eachRule(t, func(t *testing.T, r rule) {
		f := newTraffic(r)
		f.offerFor(2*r.limit, r.warmAfter())
		f.idle(seconds((r.maximum()+1)/r.limit) + 2*r.step)
		assert.InDelta(t, 0, f.warmth(), 1e-9)
	})
}

func TestBucketStaysColdBelowTheColdRate(t *testing.T) {
	t.Parallel()
	f := newTraffic(standard())
	for range 600 {
		assert.InDelta(t, 332, f.offer(332), 0.5)
		assert.InDelta(t, 0, f.warmth(), 0.03)
	}
}

func TestBucketTakesBackWhatDidNotPass(t *testing.T) {
	t.Parallel()
	c := standard().curve()
	kept, returned := newTraffic(standard()).bucket, newTraffic(standard()).bucket
	step := int64(17_000_000)
	kept.AddPassed(step, 400)
	returned.AddPassed(step, 700)
	returned.AddPassed(step, -300)
	returned.AddPassed(step-1, 1000) // an earlier step is drained already
	kept.Sync(c, step+1)
	returned.Sync(c, step+1)
	assert.Equal(t, kept, returned)
}

func TestBucketIgnoresEarlierSteps(t *testing.T) {
	t.Parallel()
	f := newTraffic(standard())
	f.offerFor(2000, 5*time.Second)
	before := f.bucket
	f.bucket.Sync(f.curve, f.step-1)
	f.bucket.Sync(f.curve, f.step-3)
	assert.Equal(t, before, f.bucket)
}

func TestBucketKeepsItsShareOverAChangedRule(t *testing.T) {
	t.Parallel()
	changes := map[string]func(r *rule){
		"hardly at all":    func(r *rule) { r.limit *= 1.001 },
		"a higher limit":   func(r *rule) { r.limit *= 10 },
		"a fraction of it": func(r *rule) { r.limit /= 1000 },
		"a longer period":  func(r *rule) { r.period *= 6 },
		"a colder factor":  func(r *rule) { r.coldFactor = 8 },
		"a finer step":     func(r *rule) { r.step = 100 * time.Millisecond },
		"a coarser step":   func(r *rule) { r.step = 10 * time.Second },
	}
	for name, change := range changes {
		for _, warmedFor := range []int{0, 3, 8, 20} {
			t.Run(fmt.Sprintf("%s after %d s", name, warmedFor), func(t *testing.T) {
				t.Parallel()
				f := newTraffic(standard())
				f.offerFor(2000, seconds(float64(warmedFor)))
				to := standard()
				change(&to)
				f.bucket.Rescale(f.curve, to.curve())
				want := to.ceiling(f.naive.stored * to.maximum() / f.rule.maximum())
				assert.InEpsilon(t, want, f.bucket.Limit(to.curve()), 1e-6)

				step := f.step * int64(time.Second) / int64(to.step)
				f.bucket.Sync(to.curve(), step)
				f.bucket.Sync(to.curve(), step+1)
				assert.LessOrEqual(t, f.bucket.Limit(to.curve()), to.limit)
			})
		}
	}
}

// What passed in the present step counts by its share, too: a resource of 1000
// per second that is cold is not warm at 10 because 333 tokens have passed.
func TestBucketKeepsItsShareOfWhatIsNotDrainedYet(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0.01, 0.5, 1.001, 100} {
		for _, warmedFor := range []int{1, 3, 8} {
			f := newTraffic(standard())
			f.offerFor(2000, seconds(float64(warmedFor)))
			to := standard()
			to.limit *= factor
			f.bucket.Rescale(f.curve, to.curve())
			f.bucket.Sync(to.curve(), f.step)
			f.naive.sync(f.step)
			assert.InEpsilon(t, f.rule.ceiling(f.naive.stored)*factor, f.bucket.Limit(to.curve()), 0.01,
				"%v times the limit after %d s", factor, warmedFor)
		}
	}
}

// A limit may be so small that the new one is more times it than there are numbers.
func TestBucketOfATinyLimitIsColdUnderAnotherLimit(t *testing.T) {
	t.Parallel()
	r := standard()
	r.limit = 1e-310
	f := newTraffic(r)
	f.bucket.Rescale(f.curve, standard().curve())
	assert.InEpsilon(t, 1000/3.0, f.bucket.Limit(standard().curve()), 1e-6)
}

func TestBucketOfARuleThatBlockedAllStartsCold(t *testing.T) {
	t.Parallel()
	nothing := standard()
	nothing.limit = 0
	f := newTraffic(nothing)
	f.offerFor(1000, time.Minute)
	c := standard().curve()
	f.bucket.Rescale(f.curve, c)
	assert.InEpsilon(t, 1000/3.0, f.bucket.Limit(c), 1e-9)
	f.bucket.Rescale(c, nothing.curve())
	assert.Zero(t, f.bucket.Limit(nothing.curve()))
}

// judged returns a bucket that is judged over a second, in steps of a tenth.
func judged(r rule) *traffic {
	r.step = 100 * time.Millisecond
	f := newTraffic(r)
	f.curve = f.curve.JudgedOver(time.Second)
	return f
}

// load loads the bucket for a time with what its limit allows but no more
// than a rate, and returns how many tokens passed.
func (f *traffic) load(rate float64, d time.Duration) (passed float64) {
	for range d / f.rule.step {
		f.step++
		f.bucket.Sync(f.curve, f.step)
		f.fraction += min(rate, f.bucket.Limit(f.curve)) * f.rule.step.Seconds()
		tokens := math.Floor(f.fraction)
		f.fraction -= tokens
		f.bucket.AddPassed(f.step, int64(tokens))
		passed += tokens
	}
	return passed
}

// burst has so many tokens pass at once at the beginning of each second.
func (f *traffic) burst(tokens int64, seconds int) {
	for range seconds {
		for i := range 10 {
			f.step++
			f.bucket.Sync(f.curve, f.step)
			if i == 0 {
				f.bucket.AddPassed(f.step, tokens)
			}
		}
	}
}

func TestBucketJudgedOverAWindowFollowsTheIdealCurve(t *testing.T) {
	t.Parallel()
	f := judged(standard())
	for second, want := range []float64{341, 358, 378, 402, 431, 467, 514, 579, 677, 854, 1000, 1000} {
		assert.InEpsilon(t, want, f.load(2000, time.Second), 0.04, "second %d", second)
	}
}

func TestBucketJudgedOverAWindowStaysColdBelowTheColdRate(t *testing.T) {
	t.Parallel()
	f := judged(standard())
	f.load(300, time.Minute)
	assert.InDelta(t, 0, f.warmth(), 0.03)
}

func TestBucketJudgedOverAWindowTakesABurstForItsRate(t *testing.T) {
	t.Parallel()
	f := judged(standard())
	f.burst(300, 60)
	assert.InDelta(t, 0, f.warmth(), 0.03, "below the cold rate of 333 a second")
	f.burst(350, 120)
	assert.Greater(t, f.warmth(), 0.9, "above the cold rate")
	f = judged(standard())
	f.load(2000, 20*time.Second)
	f.burst(500, 60)
	assert.InDelta(t, 1, f.warmth(), 1e-9, "warm, at half the limit")
	f.burst(300, 60)
	assert.InDelta(t, 0, f.warmth(), 0.05, "cold again")
}

func TestBucketJudgedOverAWindowCoolsDown(t *testing.T) {
	t.Parallel()
	f := judged(standard())
	f.load(2000, 20*time.Second)
	assert.InDelta(t, 1, f.warmth(), 1e-9)
	f.load(0, 20*time.Second)
	assert.InDelta(t, 0, f.warmth(), 1e-9)
}

func TestBucketJudgedOverAWindowKeepsItsShareOverAChangedLimit(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0.001, 0.5, 1000} {
		f := judged(standard())
		f.load(2000, 3*time.Second)
		to := standard()
		to.limit *= factor
		to.step = f.rule.step
		want := f.bucket.Limit(f.curve) * factor
		curve := to.curve().JudgedOver(time.Second)
		f.bucket.Rescale(f.curve, curve)
		assert.InEpsilon(t, want, f.bucket.Limit(curve), 1e-6, "%v times the limit", factor)
	}
}

// A turn of many tokens is further from the last one than a step is long, and that
// is no sign of idleness if somebody waits for it.
func TestBucketOfAThrottleWarmsUpIfCallsWait(t *testing.T) {
	t.Parallel()
	for _, weight := range []int64{1, 10, 50} {
		f := newTraffic(rule{limit: 10, period: time.Minute, coldFactor: 3, step: time.Second})
		f.curve = f.curve.JudgedByCalls()
		start := f.step
		at := float64(start)
		for f.step < start+90 {
			f.bucket.Sync(f.curve, f.step)
			f.bucket.AddPassed(f.step, weight)
			at += float64(weight) / f.bucket.Limit(f.curve)
			f.bucket.KeepBusyUntil(int64(at))
			f.step = int64(at)
		}
		assert.InDelta(t, 1, f.warmth(), 1e-9, "turns of %d tokens", weight)
		f.step += 3600
		f.bucket.Sync(f.curve, f.step)
		assert.InDelta(t, 0, f.warmth(), 1e-9, "cold again after turns of %d tokens", weight)
	}
}

// However little passes, a step in which calls were refused is no idle one; and
// nothing that was not let through makes a resource warm.
func TestBucketNeitherCoolsNorWarmsWhileCallsAreRefused(t *testing.T) {
	t.Parallel()
	eachRule(t, func(t *testing.T, r rule) {
		f := newTraffic(r)
		refuseForTenSteps := func() {
			for range 10 {
				f.sync()
				f.refuse()
				f.step++
			}
			f.sync()
		}
		refuseForTenSteps()
		assert.InDelta(t, 0, f.warmth(), 1e-9, "cold")
		f.offerFor(2*r.limit, r.warmAfter())
		refuseForTenSteps()
		assert.InDelta(t, 1, f.warmth(), 1e-9, "warm")
	})
}

// Whatever the limit, a load below the cold rate that is never refused leaves a
// resource cold, and makes a warm one cold again.
func TestBucketIsColdBelowTheColdRateWhateverTheLimit(t *testing.T) {
	t.Parallel()
	eachRule(t, func(t *testing.T, r rule) {
		if r.period > time.Minute {
			return // as the others, but for the time that it takes
		}
		cold := r.limit / r.coldFactor
		rate := 0.5 * cold
		if perStep := r.coldStep(); perStep >= 1 {
			rate = (math.Ceil(perStep) - 1) / r.step.Seconds() // less than that in every step
		}
		for _, isWarm := range []bool{false, true} {
			f := newTraffic(r)
			if isWarm {
				f.offerFor(2*r.limit, r.warmAfter())
			}
			f.offerFor(rate, seconds((r.maximum()+4)/(r.limit-rate))+seconds(10/cold)+3*r.step)
			// A token lowers the bucket until the next ones come.
			stored := r.maximum() - 3 - 2*rate*r.step.Seconds()
			assert.LessOrEqual(t, f.bucket.Limit(f.curve), r.ceiling(stored)*(1+1e-9), "warm at first: %v", isWarm)
		}
	})
}

func TestBucketIsFullWhenCold(t *testing.T) {
	t.Parallel()
	f := newTraffic(rule{limit: 1000, period: 10 * time.Second, coldFactor: 3, step: time.Second})
	assert.True(t, f.bucket.IsFull(f.curve))
	f.pass(1)
	assert.False(t, f.bucket.IsFull(f.curve), "something has passed in this step")
	f.step++
	f.sync()
	assert.False(t, f.bucket.IsFull(f.curve), "and was drained")
	f.idle(time.Minute)
	assert.True(t, f.bucket.IsFull(f.curve))
}
