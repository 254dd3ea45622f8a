package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// A call that is refused could not have passed sooner than FullUntil says, and if
// nobody comes a whole limit can pass just then.
func TestWindowFullUntilIsNotTooLate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(
			rapid.Map(rapid.IntRange(1, 12), func(n int) float64 { return float64(n) }),
			rapid.Float64Range(0.05, 12),
		).Draw(t, "limit")
		b := &book{gate: newGate(t, flow.Rule{
			Resource: "r", Limit: limit,
			Buckets: rapid.SampledFrom([]int{1, 2, 5, 10}).Draw(t, "buckets"),
			Strict:  rapid.Bool().Draw(t, "strict"),
		})}
		n := rapid.Int32Range(1, 6)
		t.Repeat(map[string]func(*rapid.T){
			"take":        func(t *rapid.T) { b.take(n.Draw(t, "n")) },
			"time passes": b.letTimePass,
			"wait": func(t *rapid.T) {
				n := n.Draw(t, "n")
				if b.take(n) == rule.Pass {
					t.Skip("it was not refused")
				}
				until := b.window.FullUntil(b.compiled, b.now, n)
				if until.Sub(b.now) > time.Hour {
					assert.Equal(t, rule.Never, b.window.RetryAfter(b.now, n))
					return
				}
				if until > b.now {
					b.now = until - 1
					assert.Equal(t, rule.Block, b.take(n), "tokens remained before")
				}
				if limit == float64(int(limit)) {
					b.now = until
					assert.Equal(t, rule.Pass, b.take(n))
				}
			},
		})
	})
}
