package warmup_test

import (
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/warmup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rule is what a curve is made from, and the formulas of the warm-up bucket
// written down once more.
type rule struct {
	limit      float64 // T, per second
	period     time.Duration
	coldFactor float64
	step       time.Duration
}

func (r rule) curve() warmup.Curve {
	return warmup.NewCurve(r.limit, r.period, r.coldFactor, r.step)
}

func (r rule) warning() float64 { return r.period.Seconds() * r.limit / (r.coldFactor - 1) }

func (r rule) maximum() float64 {
	return r.warning() + 2*r.period.Seconds()*r.limit/(1+r.coldFactor)
}

func (r rule) ceiling(stored float64) float64 {
	if stored < r.warning() {
		return r.limit
	}
	slope := (r.coldFactor - 1) / r.limit / (r.maximum() - r.warning())
	return 1 / ((stored-r.warning())*slope + 1/r.limit)
}

// coldStep is how many whole tokens a step sees at the cold rate.
func (r rule) coldStep() float64 {
	return math.Floor(r.limit * r.step.Seconds() / r.coldFactor)
}

// naiveBucket is the warm-up bucket, step by step as the formulas have it.
type naiveBucket struct {
	rule   rule
	stored float64
	synced int64           // the step of the last refill
	passed map[int64]int64 // by step
	held   map[int64]bool  // steps in which calls of one token were refused
}

func newNaiveBucket(r rule, step int64) *naiveBucket {
	return &naiveBucket{rule: r, stored: r.maximum(), synced: step, passed: map[int64]int64{}, held: map[int64]bool{}}
}

func (b *naiveBucket) sync(step int64) {
	if step <= b.synced {
		return
	}
	previous := b.passed[step-1]
	elapsed, wasWarm := step-b.synced, b.stored <= b.rule.warning()
	idle := elapsed
	if b.held[b.synced] {
		idle--
	}
	perStep := b.rule.step.Seconds() * b.rule.limit
	switch {
	case wasWarm:
		b.stored += float64(elapsed) * perStep
	case float64(previous) < b.rule.coldStep():
		b.stored += float64(idle) * perStep
	}
	b.stored = min(b.stored, b.rule.maximum())
	b.stored = max(0, b.stored-float64(previous))
	if wasWarm && idle == 0 {
		b.stored = min(b.stored, b.rule.warning())
	}
	b.synced = step
}

// traffic is a bucket that calls go through, a step at a time, and its model
// beside it.
type traffic struct {
	rule     rule
	curve    warmup.Curve
	bucket   warmup.Bucket
	naive    *naiveBucket
	step     int64
	fraction float64 // the fraction of a token that was left over
}

func newTraffic(r rule) *traffic {
	const start = 17_000_000
	return &traffic{
		rule: r, curve: r.curve(), step: start,
		bucket: warmup.NewBucket(r.curve(), start), naive: newNaiveBucket(r, start),
	}
}

func (f *traffic) sync() {
	f.bucket.Sync(f.curve, f.step)
	f.naive.sync(f.step)
}

func (f *traffic) pass(n int64) {
	f.bucket.AddPassed(f.step, n)
	f.naive.passed[f.step] += n
}

// refuse has a call of one token refused.
func (f *traffic) refuse() {
	f.bucket.KeepBusy(f.curve, 1)
	f.naive.held[f.step] = true
}

// offer offers a rate of calls for one step and returns how many pass.
func (f *traffic) offer(rate float64) (passed int64) {
	f.sync()
	f.fraction += min(rate, f.bucket.Limit(f.curve)) * f.rule.step.Seconds()
	if rate > f.bucket.Limit(f.curve) {
		f.refuse()
	}
	passed = int64(f.fraction + 1e-9)
	f.fraction -= float64(passed)
	f.pass(passed)
	f.step++
	return passed
}

// offerFor offers a rate of calls for a time and returns how many pass.
func (f *traffic) offerFor(rate float64, d time.Duration) (passed int64) {
	for range (d + f.rule.step - 1) / f.rule.step {
		passed += f.offer(rate)
	}
	return passed
}

// idle lets a time pass in which nobody calls.
func (f *traffic) idle(d time.Duration) {
	f.step += int64((d + f.rule.step - 1) / f.rule.step)
	f.sync()
}

// warmth returns how far between cold and warm the limit is, from 0 to 1.
func (f *traffic) warmth() float64 {
	cold := f.rule.limit / f.rule.coldFactor
	return (f.bucket.Limit(f.curve) - cold) / (f.rule.limit - cold)
}

// seconds returns a number of seconds as a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
