package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestQuantilesAreThoseOfTheSortedTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(0, 10_000), 1, 100).Draw(t, "times")
		part := rapid.Float64Range(0, 1).Draw(t, "part")
		var l latencies
		for _, took := range times {
			l.add(time.Duration(took))
		}
		slices.Sort(times)
		assert.Equal(t, times[int(part*float64(len(times)-1))], l.quantile(part).Nanoseconds())
	})
}
