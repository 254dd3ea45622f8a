package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/load"
)

func TestDescribe(t *testing.T) {
	at := func(ms int) load.Pass {
		return load.Pass{After: clock.Instant(time.Duration(ms) * time.Millisecond)}
	}
	assert.Equal(t, []string{"10.0", "100ms", "100ms", "100ms", "100ms"},
		describe([]load.Pass{at(0), at(100), at(200), at(300)}))
	assert.Equal(t, []string{"2.0", "0s", "500ms", "1s", "1s"},
		describe([]load.Pass{at(0), at(0), at(1000), at(1500)}), "the p1 and p99 of a few gaps are the ends")
	assert.Equal(t, []string{"–", "–", "–", "–", "–"}, describe([]load.Pass{at(0)}), "no gap")
}
