package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/bench/internal/load"
	"github.com/penstock-go/penstock/clock"
)

func TestPassesCountForTheSecondInWhichTheyEnded(t *testing.T) {
	var passes []load.Pass
	for _, ms := range []int{7000, 7001, 7999, 8000, 9500, 10_000} {
		end := clock.Instant(time.Duration(ms) * time.Millisecond)
		passes = append(passes, load.Pass{Before: end - clock.Instant(2*time.Millisecond), After: end})
	}
	assert.Equal(t, "3 1 1", inEachSecond(passes, 3), "the last is not of the three seconds")
	assert.Equal(t, "3 1 1 1 0", inEachSecond(passes, 5))
	assert.Equal(t, "0 0", inEachSecond(nil, 2))
}
