package warmup_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/internal/warmup"
)

// guava is the formulas written down once more.
type guava struct{ limit, period, factor float64 }

func (z guava) stable() float64    { return 1 / z.limit }
func (z guava) cold() float64      { return z.stable() * z.factor }
func (z guava) threshold() float64 { return 0.5 * z.period / z.stable() }
func (z guava) maximum() float64   { return z.threshold() + 2*z.period/(z.stable()+z.cold()) }

func (z guava) interval(x float64) float64 {
	if x <= z.threshold() {
		return z.stable()
	}
	slope := (z.cold() - z.stable()) / (z.maximum() - z.threshold())
	return z.stable() + (x-z.threshold())*slope
}

func (z guava) tested() warmup.CostCurve {
	return warmup.NewCostCurve(z.limit, time.Duration(z.period*1e9), z.factor)
}

func guavaRules() *rapid.Generator[guava] {
	return rapid.Custom(func(t *rapid.T) guava {
		return guava{
			limit:  math.Pow(10, rapid.Float64Range(-1, 9).Draw(t, "log limit")),
			period: math.Round(math.Pow(10, rapid.Float64Range(-2, 4).Draw(t, "log period"))*1e3) / 1e3,
			factor: rapid.Float64Range(1.1, 100).Draw(t, "cold factor"),
		}
	})
}

func TestCostCurveOfFivePerSecond(t *testing.T) {
	t.Parallel()
	z := warmup.NewCostCurve(5, 1500*time.Millisecond, 3)
	assert.InDelta(t, 7.5, z.Maximum(), 1e-9)
	stored := z.Maximum()
	for _, want := range []float64{0.547, 0.440, 0.333, 0.230, 0.200, 0.200} {
		assert.InDelta(t, want, z.Cost(stored, 1), 0.002)
		stored--
	}
	assert.InDelta(t, 0.2, z.Cost(0, 1), 1e-12, "a fresh one")
	assert.InDelta(t, 0.3, z.Cost(0.5, 1.5), 1e-12, "a third of it stored")
	assert.InDelta(t, 7.5, z.Restored(0, 1.5), 1e-9, "the period restores all of it")
	assert.InDelta(t, 7.5, z.Restored(7, 60), 1e-9, "and no more")
	assert.InDelta(t, 5.0/3, z.Limit(7.5), 1e-9)
	assert.InDelta(t, 5, z.Limit(3.75), 1e-9)
	assert.InDelta(t, 5, z.Limit(0), 1e-9)
}

func TestCostCurveCostIsTheAreaUnderTheInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := guavaRules().Draw(t, "rule")
		z := model.tested()
		assert.InEpsilon(t, model.maximum(), z.Maximum(), 1e-9)
		stored := model.maximum() * rapid.Float64Range(0, 1).Draw(t, "stored")
		n := model.maximum() * rapid.Float64Range(0.01, 2).Draw(t, "n")

		const slices = 10_000 // one of them has the bend of the interval in it, and is off by up to 1e-5 of the area
		var area float64
		for i := range slices { // the middle of each slice; below zero they are fresh
			area += model.interval(stored-n*(float64(i)+0.5)/slices) * n / slices
		}
		assert.InEpsilon(t, area, z.Cost(stored, n), 1e-4)
		assert.InEpsilon(t, 1/model.interval(stored), z.Limit(stored), 1e-6)
	})
}

func TestCostCurveCostsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := guavaRules().Draw(t, "rule")
		z := model.tested()
		stored := model.maximum() * rapid.Float64Range(0, 1).Draw(t, "stored")
		part := model.maximum() * rapid.Float64Range(0.001, 0.5).Draw(t, "part")
		together := z.Cost(stored, 3*part)
		var single float64
		for range 3 {
			single += z.Cost(stored, part)
			stored = max(0, stored-part)
		}
		assert.InEpsilon(t, together, single, 1e-9)
	})
}

// From cold, the period is what it takes to the threshold.
func TestCostCurveIsWarmAfterItsPeriod(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		model := guavaRules().Draw(t, "rule")
		depth := model.maximum() - model.threshold()
		assert.InEpsilon(t, model.period, model.tested().Cost(model.maximum(), depth), 1e-6)
	})
}

func TestCostCurveIsAlwaysANumber(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0, 5e-324, 1e-300, 1e-9, 1e12} {
		for _, period := range []time.Duration{1, time.Second, 24 * time.Hour} {
			for _, factor := range []float64{1.0000001, 3, 1000} {
				z := warmup.NewCostCurve(limit, period, factor)
				for _, n := range []float64{0, 1, 1e9} {
					for _, x := range []float64{z.Cost(z.Maximum(), n), z.Cost(0, n), z.Restored(0, n), z.Limit(n)} {
						assert.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%v %v %v: %v", limit, period, factor, x)
						assert.GreaterOrEqual(t, x, 0.0)
					}
				}
				assert.Positive(t, z.Maximum())
			}
		}
	}
}
