package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/clock"
)

func TestWorstSeconds(t *testing.T) {
	tests := []struct {
		name               string
		passes             []Pass
		calendar, anywhere int
	}{
		{"none", nil, 0, 0},
		{"one second", passes(100, 200, 999), 3, 3},
		{"a burst around a boundary", passes(900, 950, 1000, 1050), 2, 4},
		{"a second does not hold its end", passes(500, 1500), 1, 1},
		{"the worst is not the first", passes(0, 2500, 2600, 3100), 2, 3},
		{"begun in one second and ended in the next", []Pass{between(999, 1001), between(1002, 1003)}, 1, 2},
		{"a call that may have passed a second later", []Pass{between(0, 1200), between(100, 200)}, 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.calendar, WorstCalendarSecond(test.passes))
			assert.Equal(t, test.anywhere, WorstSecond(test.passes))
		})
	}
}

// passes returns calls that passed at once, so many milliseconds after the beginning
// of a second.
func passes(times ...int) (list []Pass) {
	for _, ms := range times {
		list = append(list, between(ms, ms))
	}
	return list
}

// between returns a call that began and ended at those milliseconds.
func between(begin, end int) Pass {
	at := func(ms int) clock.Instant { return clock.Instant(time.Duration(ms) * time.Millisecond) }
	return Pass{Before: at(begin), After: at(end)}
}
