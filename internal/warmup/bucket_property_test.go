package warmup_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// rules draws rules as users write them.
func rules() *rapid.Generator[rule] {
	return rapid.Custom(func(t *rapid.T) rule {
		return rule{
			limit:      math.Pow(10, rapid.Float64Range(-1, 6).Draw(t, "log limit")),
			period:     time.Duration(rapid.Int64Range(int64(time.Second), int64(10*time.Minute)).Draw(t, "period")),
			coldFactor: rapid.Float64Range(1.1, 10).Draw(t, "cold factor"),
			step: rapid.SampledFrom([]time.Duration{
				100 * time.Millisecond, time.Second, 1500 * time.Millisecond, 10 * time.Second,
			}).Draw(t, "step"),
		}
	})
}

func TestCurveFollowsTheFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rules().Draw(t, "rule")
		c := r.curve()
		stored := r.maximum() * rapid.Float64Range(0, 1).Draw(t, "share")
		assert.InEpsilon(t, r.ceiling(stored), c.Limit(stored), 1e-9)
		assert.InEpsilon(t, r.limit/r.coldFactor, c.Limit(r.maximum()), 1e-9, "cold")
		assert.InEpsilon(t, r.limit, c.Limit(0), 1e-9, "warm")
		assert.LessOrEqual(t, c.Limit(stored*1.01), c.Limit(stored)*(1+1e-9), "colder is never higher")
	})
}

// modelled draws rules that let whole tokens pass in a step at the cold rate:
// those that the formulas are good for as they stand.
func modelled() *rapid.Generator[rule] {
	return rules().Filter(func(r rule) bool { return r.coldStep() >= 1 })
}

func TestBucketBehavesLikeItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := modelled().Draw(t, "rule")
		f := newTraffic(r)
		perStep := int64(2*r.limit*r.step.Seconds()) + 1
		t.Repeat(map[string]func(*rapid.T){
			"sync": func(t *rapid.T) {
				f.step += rapid.SampledFrom([]int64{0, 1, 1, 1, 1, 2, 7, 600}).Draw(t, "steps")
				f.sync()
			},
			"pass": func(t *rapid.T) {
				f.pass(rapid.Int64Range(0, perStep).Draw(t, "n"))
			},
			"refuse": func(*rapid.T) { f.refuse() },
			"take back": func(t *rapid.T) {
				f.pass(-rapid.Int64Range(0, f.naive.passed[f.step]).Draw(t, "n"))
			},
			"": func(t *rapid.T) {
				ceiling := f.bucket.Limit(f.curve)
				assert.InEpsilon(t, r.ceiling(f.naive.stored), ceiling, 1e-6)
				assert.LessOrEqual(t, ceiling, r.limit)
				assert.GreaterOrEqual(t, ceiling, r.limit/r.coldFactor*(1-1e-9))
			},
		})
	})
}

// However extreme the rule, the limit is a number that makes sense.
func TestCeilingIsAlwaysANumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rule{
			limit:      math.Pow(10, rapid.Float64Range(-6, 11).Draw(t, "log limit")),
			period:     time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "period")),
			coldFactor: 1 + math.Pow(10, rapid.Float64Range(-3, 6).Draw(t, "log cold factor")),
			step:       time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(time.Minute)).Draw(t, "step")),
		}
		f := newTraffic(r)
		for range 50 {
			f.offer(r.limit * rapid.Float64Range(0, 2).Draw(t, "offered"))
			ceiling := f.bucket.Limit(f.curve)
			assert.False(t, math.IsNaN(ceiling) || math.IsInf(ceiling, 0), "%+v: %v", r, ceiling)
			assert.LessOrEqual(t, ceiling, r.limit*(1+1e-9))
			assert.GreaterOrEqual(t, ceiling, r.limit/r.coldFactor*(1-1e-6))
			f.step += rapid.Int64Range(0, 5).Draw(t, "idle")
		}
	})
}

func TestRescaleKeepsTheShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := modelled().Draw(t, "from"), rules().Draw(t, "to")
		f := newTraffic(from)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			f.offer(2 * from.limit)
		}
		f.bucket.Rescale(f.curve, to.curve())
		want := to.ceiling(f.naive.stored * to.maximum() / from.maximum())
		assert.InEpsilon(t, want, f.bucket.Limit(to.curve()), 1e-6)
	})
}
