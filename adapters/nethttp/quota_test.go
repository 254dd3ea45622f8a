package nethttp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
)

func TestWholeQuotaEqualsTheRateOfTheRule(t *testing.T) {
	for _, test := range []struct {
		limit          float64
		window         time.Duration
		quota, seconds int64
	}{
		{1000, time.Second, 1000, 1},
		{60, time.Minute, 60, 60},
		{5, 24 * time.Hour, 5, 86400},
		{0.5, time.Second, 1, 2},
		{2.5, time.Second, 5, 2},
		{0.001, time.Second, 1, 1000},
		{0.333333, time.Second, 1, 3},
		{0.25, time.Hour, 1, 4 * 3600},
		{100, 100 * time.Millisecond, 1000, 1},
		{1, 10 * time.Millisecond, 100, 1},
		{1, 300 * time.Millisecond, 10, 3},
		{10, 1500 * time.Millisecond, 20, 3},
		{1e9, 10 * time.Millisecond, 1e11, 1},
		{1e9, 24 * time.Hour, 1e9, 86400},
		{0, time.Second, 0, 1},
		{0, 1500 * time.Millisecond, 0, 2},
		{1e-300, time.Second, 0, 1},
		{3.14159, time.Second, 311, 99}, // the closest of a hundred, rounded down
	} {
		quota, seconds := wholeQuota(test.limit, test.window)
		assert.Equal(t, test.quota, quota, "%v in %v", test.limit, test.window)
		assert.Equal(t, test.seconds, seconds, "%v in %v", test.limit, test.window)
	}
}

func TestWholeQuotaNeverExceedsTheRateOfTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Float64Range(0, flow.MaxLimit).Draw(t, "limit")
		window := time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(24*time.Hour)).Draw(t, "window"))
		quota, seconds := wholeQuota(limit, window)
		assert.GreaterOrEqual(t, time.Duration(seconds)*time.Second, window, "no shorter than the rule's window")
		assert.LessOrEqual(t, seconds, int64(longestQuotaWindow+2*quotaWindows))
		assert.LessOrEqual(t, quota, int64(maxInteger))
		exact := limit / window.Seconds() * float64(seconds)
		assert.LessOrEqual(t, float64(quota), exact*(1+quotaPrecision))
		assert.Greater(t, float64(quota), exact*(1-quotaPrecision)-1, "less than one call is lost")
	})
}
