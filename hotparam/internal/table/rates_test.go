package table

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

func TestCompileRatesNamesAllMistakes(t *testing.T) {
	_, err := CompileRates(1, TokenBucket, []Limit{
		{Limit: -1, Window: 0, Burst: 0},
		{Limit: math.NaN(), Window: time.Second, Burst: math.Inf(1), MaxWait: -1},
	})
	require.Error(t, err)
	for _, part := range []string{
		"limit 0 is -1", "window of limit 0 is 0s", "burst of limit 0 is 0",
		"limit 1 is NaN", "burst of limit 1 is +Inf", "longest wait of limit 1 is -1ns",
	} {
		assert.ErrorContains(t, err, part)
	}
	_, err = CompileRates(1, TokenBucket, make([]Limit, MaxClasses+1))
	assert.ErrorContains(t, err, "33 different limits")
	_, err = CompileRates(1, TokenBucket, []Limit{{Limit: 1, Window: 24 * time.Hour, Burst: 1e9}})
	assert.ErrorContains(t, err, "36 years")
	_, err = CompileRates(1, TokenBucket, []Limit{{Limit: 1, Window: 100 * time.Hour, Burst: 1000}, perSecond(1e9, 1)})
	assert.ErrorContains(t, err, "differ by too much")
}

func TestResolutionIsExactForCommonLimits(t *testing.T) {
	for _, c := range []struct {
		limit Limit
		exact bool
		most  float64 // nanoseconds
	}{
		{perSecond(10, 10), true, 1},
		{perSecond(7, 20), true, 1},
		{perSecond(997, 997), true, 0.01},
		{perSecond(0.1, 2.5), true, 1},
		{perSecond(1_000_000, 1), true, 1},
		{Limit{Limit: 5, Window: 5 * time.Minute, Burst: 5}, true, 1},
		{Limit{Limit: 1000, Window: time.Hour, Burst: 1000}, true, 1},
		{Limit{Limit: 9_999_991, Window: time.Hour, Burst: 9_999_991}, false, 1.3},
		{Limit{Limit: 1000, Window: 24 * time.Hour, Burst: 1000}, false, 30},
		{Limit{Limit: 1000, Window: 365 * 24 * time.Hour, Burst: 1000}, false, 10_000},
	} {
		rates, err := CompileRates(1, TokenBucket, []Limit{c.limit})
		require.NoError(t, err)
		assert.Equal(t, c.exact, rates.Exact(), "%v", c.limit)
		assert.LessOrEqual(t, rates.Resolution(), c.most, "%v", c.limit)
		filling := float64(c.limit.Burst) / c.limit.Limit * float64(c.limit.Window)
		assert.GreaterOrEqual(t, float64(rates.MaxDebt()), 2.9*filling, "%v", c.limit)
	}
}

// flowBucket is a token bucket as package flow has it, in floating point.
type flowBucket struct {
	rate, burst, tokens float64
	at                  clock.Instant
}

func (b *flowBucket) take(now clock.Instant, tokens int32) bool {
	held := min(b.burst, b.tokens+float64(max(0, now.Sub(b.at)))*b.rate)
	if float64(tokens) > b.burst || float64(tokens)-held >= 0.999*b.rate {
		return false
	}
	b.tokens, b.at = held-float64(tokens), max(b.at, now)
	return true
}

func TestTokenBucketDecidesLikeThatOfFlowRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Limits for which a token takes a whole number of tenths of a nanosecond, so
		// that the rounding of floating point does not decide.
		limit := Limit{
			Limit:  rapid.SampledFrom([]float64{1, 2, 4, 5, 8, 10, 16, 100, 1000}).Draw(t, "limit"),
			Window: rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "window"),
			Burst:  rapid.SampledFrom([]float64{1, 2, 3.5, 10, 25}).Draw(t, "burst"),
		}
		rates := mustCompile(1, TokenBucket, limit)
		b := NewBuckets(100, rates)
		now := clock.Instant(1_000_000_000)
		like := flowBucket{rate: limit.Limit / float64(limit.Window), burst: limit.Burst, tokens: limit.Burst, at: now}
		for range rapid.IntRange(1, 100).Draw(t, "calls") {
			now = now.Add(max(0, drawStep(t, limit)))
			tokens := rapid.Int32Range(1, 4).Draw(t, "tokens")
			require.Equal(t, like.take(now, tokens), first(b.Take(hashOf(1), rates.Class(0), now, tokens)) == Taken)
		}
	})
}

func TestCallsThatCanNeverPassAreTold(t *testing.T) {
	rates := mustCompile(1, TokenBucket, perSecond(10, 5), perSecond(0, 5))
	b := NewBuckets(100, rates)
	assert.Equal(t, rule.Never, b.RetryAfter(hashOf(1), rates.Class(0), start, 6))
	assert.Equal(t, Refused, first(b.Take(hashOf(1), rates.Class(0), start, 6)))
	assert.Equal(t, rule.Never, b.RetryAfter(hashOf(1), rates.Class(1), start, 1))
	assert.Equal(t, Refused, first(b.Take(hashOf(1), rates.Class(1), start, 1)))
	assert.Equal(t, Taken, first(b.Take(hashOf(1), rates.Class(0), start, 5)))
	assert.Equal(t, 300*time.Millisecond, b.RetryAfter(hashOf(1), rates.Class(0), start, 3))

	terms := CompileWindow(1, time.Second)
	w := NewWindows(100, terms)
	assert.Equal(t, rule.Never, w.RetryAfter(hashOf(1), terms, 5, start, 6))
	assert.Equal(t, Refused, first(w.Take(hashOf(1), terms, 0, start, 1)))
}

// Coarse resolutions round, but errors do not add up: as many calls pass in a year as the
// limit allows.
func TestRoundingDoesNotAddUp(t *testing.T) {
	limit := Limit{Limit: 1_000_003, Window: 30 * 24 * time.Hour, Burst: 1000}
	rates := mustCompile(1, TokenBucket, limit)
	require.False(t, rates.Exact())
	b := NewBuckets(100, rates)
	passed, end := 0, start.Add(300*time.Hour)
	for now := start; now < end; now = now.Add(b.RetryAfter(hashOf(1), rates.Class(0), now, 1)) {
		for first(b.Take(hashOf(1), rates.Class(0), now, 1)) == Taken {
			passed++
		}
	}
	flowed := int(1_000_003 * int64(end.Sub(start)/time.Second) / (30 * 24 * 3600))
	assert.InDelta(t, 1000+flowed, passed, 1)
}
