package outgoing_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/adapters/outgoing"
)

// TestRetryBudgetIsATokenBucket compares the budget with one that counts in fractions.
func TestRetryBudgetIsATokenBucket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ratio := rapid.SampledFrom([]float64{0.001, 0.125, 0.5, 1}).Draw(rt, "ratio")
		perSecond := rapid.SampledFrom([]float64{-1, 0.25, 1, 1000}).Draw(rt, "per second")
		burst := rapid.IntRange(1, 20).Draw(rt, "burst")
		b, virtual := newBudget(t, outgoing.RetryOptions{Ratio: ratio, MinPerSecond: perSecond, Burst: burst})
		most := big.NewRat(int64(burst), 1)
		tokens := new(big.Rat).Set(most)
		add := func(n *big.Rat) {
			if tokens.Add(tokens, n); tokens.Cmp(most) > 0 {
				tokens.Set(most)
			}
		}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			wait := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(rt, "wait")).Truncate(time.Millisecond)
			virtual.Advance(wait)
			if perSecond > 0 {
				rate := new(big.Rat).SetFloat64(perSecond)
				add(rate.Mul(rate, big.NewRat(int64(wait), int64(time.Second))))
			}
			// Time counts before the call: the budget itself adds it when it is asked.
			for range rapid.IntRange(0, 30).Draw(rt, "calls") {
				b.Stats()
				b.Call()
				add(big.NewRat(int64(ratio*1000), 1000))
			}
			for range rapid.IntRange(0, 5).Draw(rt, "retries") {
				one := big.NewRat(1, 1)
				want := tokens.Cmp(one) >= 0
				require.Equal(rt, want, b.Allow())
				if want {
					tokens.Sub(tokens, one)
				}
			}
		}
	})
}
