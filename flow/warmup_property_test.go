package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// Whatever happens, the effective limit stays between cold and warm, and what the
// window holds below the highest that it had while it filled.
func TestWarmingWindowStaysWithinItsEffectiveLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := flow.Rule{
			Resource: "r", Limit: rapid.Float64Range(0.5, 50).Draw(t, "limit"), Strict: rapid.Bool().Draw(t, "strict"),
			WarmUp: flow.WarmUp{
				Period:     rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "period"),
				ColdFactor: rapid.Float64Range(1.1, 10).Draw(t, "cold factor"),
				Step:       rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(t, "step"),
			},
		}
		b := &book{gate: newGate(t, r)}
		t.Repeat(map[string]func(*rapid.T){
			"fill": func(t *rapid.T) {
				var limit float64
				for b.take(1) == rule.Pass {
					limit, _, _ = b.window.Status(b.now)
					assert.LessOrEqual(t, b.held(), int64(math.Ceil(limit)))
				}
				limit, _, _ = b.window.Status(b.now)
				assert.GreaterOrEqual(t, b.held(), int64(math.Floor(limit)), "refused, though tokens remained")
			},
			"take": func(*rapid.T) { b.take(1) },
			"time passes": func(t *rapid.T) {
				b.wait(time.Duration(rapid.SampledFrom([]int{10, 100, 300, 1000, 5000}).Draw(t, "ms")) * time.Millisecond)
			},
			"give back": b.giveBack,
			"look ahead": func(t *rapid.T) {
				ahead, remaining, _ := b.window.Status(b.now)
				b.window.Adopt(b.compiled, b.now) // opens the bucket
				limit, opened, _ := b.window.Status(b.now)
				assert.InEpsilon(t, limit, ahead, 1e-9, "the effective limit")
				assert.Contains(t, []int64{0, 1}, opened-remaining, "what remains, a saved token aside")
			},
			"": func(t *rapid.T) {
				limit, remaining, _ := b.window.Status(b.now)
				assert.LessOrEqual(t, limit, r.Limit*(1+1e-9))
				assert.GreaterOrEqual(t, limit, r.Limit/r.WarmUp.ColdFactor*(1-1e-9))
				assert.GreaterOrEqual(t, remaining, int64(0))
			},
		})
	})
}
