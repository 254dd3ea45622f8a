package table

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
)

// drawLimit draws limits whose decisions have to be exact.
func drawLimit(t *rapid.T, label string) Limit {
	l := Limit{
		Limit:   rapid.SampledFrom([]float64{1, 2, 3, 5, 7, 10, 11, 16, 100, 1000, 0.1, 0.5, 2.5, 9999}).Draw(t, label+"limit"),
		Window:  rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 7 * time.Second, time.Minute}).Draw(t, label+"window"),
		MaxWait: rapid.SampledFrom([]time.Duration{0, 1, time.Second, 3 * time.Second}).Draw(t, label+"maxWait"),
	}
	l.Burst = rapid.SampledFrom([]float64{1, 2, 3.5, 10, 25}).Draw(t, label+"burst")
	return l
}

// drawStep draws how long after a call the next one comes: mostly about as long as a token
// takes.
func drawStep(t *rapid.T, l Limit) time.Duration {
	spacing := float64(l.Window) / max(l.Limit, 0.01)
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0:
		return 0
	case 1:
		return time.Duration(spacing) + time.Duration(rapid.IntRange(-2, 2).Draw(t, "by"))
	case 2:
		return time.Duration(spacing * rapid.Float64Range(0, 3).Draw(t, "tokens"))
	case 3:
		return time.Duration(spacing*rapid.Float64Range(0, 100).Draw(t, "tokens")) + time.Hour
	}
	return time.Duration(rapid.IntRange(0, 3).Draw(t, "ns"))
}

func TestTokenBucketDecidesLikeExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "")
		rates, err := CompileRates(1, TokenBucket, []Limit{limit})
		require.NoError(t, err)
		b := NewBuckets(1000, rates)
		values := make([]reference, 4)
		now := clock.Instant(rapid.SampledFrom([]int64{0, 1, int64(start)}).Draw(t, "start"))
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = now.Add(max(0, drawStep(t, limit)))
			v := rapid.IntRange(0, len(values)-1).Draw(t, "value")
			values[v].limit = limit
			tokens := rapid.Int32Range(1, 4).Draw(t, "tokens")
			if !rates.Exact() && tooClose(&values[v], rates, now, tokens) {
				continue
			}
			wait := b.RetryAfter(hashOf(uint64(v)), rates.Class(0), now, tokens)
			pass := values[v].take(now, tokens)
			p, outcome := b.Take(hashOf(uint64(v)), rates.Class(0), now, tokens)
			require.Equal(t, pass, outcome == Taken, "value %d at %d", v, now)
			require.Equal(t, pass, wait == 0)
			if !pass {
				continue
			}
			require.NotZero(t, p)
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				b.GiveBack(p, now, tokens)
				values[v].add(now, -int64(tokens))
			case 1:
				// Perhaps when the bucket is full again, but its slot not yet swept.
				later := now.Add(time.Duration(float64(limit.Window) / limit.Limit * 5))
				if epoch := rates.Class(0).epoch; later>>epoch == now>>epoch && rapid.Bool().Draw(t, "later") {
					now = later
				}
				b.Settle(p, now, 3)
				values[v].add(now, 3)
			}
		}
	})
}

// tooClose says whether a call lacks so nearly what it may lack that rounding decides.
func tooClose(r *reference, rates *Rates, now clock.Instant, tokens int32) bool {
	difference := r.lacking(now, tokens)
	difference.Sub(difference, big.NewRat(999, 1000)).Abs(difference)
	distance, _ := difference.Float64()
	return distance <= 3*rates.Resolution()
}

func TestThrottleDecidesLikeExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t, "")
		rates, err := CompileRates(1, Throttle, []Limit{limit})
		require.NoError(t, err)
		if !rates.Exact() {
			t.Skip("rounding decides")
		}
		b := NewBuckets(1000, rates)
		values := make([]reference, 4)
		now := clock.Instant(rapid.SampledFrom([]int64{0, 1, int64(start)}).Draw(t, "start"))
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = now.Add(max(0, drawStep(t, limit)))
			v := rapid.IntRange(0, len(values)-1).Draw(t, "value")
			values[v].limit = limit
			tokens := rapid.Int32Range(1, 4).Draw(t, "tokens")
			wait := b.RetryAfter(hashOf(uint64(v)), rates.Class(0), now, tokens)
			at, pass := values[v].reserve(now, tokens)
			_, got, outcome := b.Reserve(hashOf(uint64(v)), rates.Class(0), now, tokens)
			require.Equal(t, pass, outcome == Taken)
			require.Equal(t, pass, wait == 0)
			if pass {
				require.Equal(t, at, got)
			}
		}
	})
}
