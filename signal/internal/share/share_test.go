package share

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
)

func at(milliseconds int) clock.Instant {
	return clock.Instant(milliseconds) * clock.Instant(time.Millisecond)
}

func TestReadingsAreDueEvery50Milliseconds(t *testing.T) {
	var r Readings
	require.True(t, r.Due(at(7)), "the first")
	require.False(t, r.Due(at(7)))
	require.False(t, r.Due(at(56)))
	require.True(t, r.Due(at(57)))
	require.False(t, r.Due(at(106)))
	require.True(t, r.Due(at(100_000)))
}

func TestMeanIsThatOfTheLastSecond(t *testing.T) {
	var m Mean
	require.Zero(t, m.Value())
	steps := []struct {
		from, to int
		used, of float64
		want     float64
	}{
		{0, 250, 1, 1, 1},
		{250, 500, 0, 1, 0.5},
		{500, 500, 0, 0, 0.5}, // nothing
		{500, 750, 0, 1, 1.0 / 3},
		{750, 1000, 1, 1, 0.5},
		{1000, 1250, 1, 1, 0.5}, // the first is out of it
		{1250, 1500, 1, 1, 0.75},
		{1500, 1790, 1, 1, 1},     // late by less than 50 ms
		{1790, 9000, 1, 20, 0.05}, // longer than a second, which counts alone
		{9000, 9250, 1, 2, 0.5},
		{9250, 9500, 9, 2, 1}, // at most 1
		{9500, 9500, -1, math.NaN(), 1},
	}
	for _, s := range steps {
		m.Add(at(s.from), at(s.to), s.used, s.of)
		require.InDelta(t, s.want, m.Value(), 1e-9, "at %d ms", s.to)
	}
}

func TestMeanKeepsFewParts(t *testing.T) {
	var m Mean
	for i := range 1000 {
		m.Add(at(50*i), at(50*i+50), 1, 2)
	}
	require.LessOrEqual(t, len(m.parts), 21)
	require.InDelta(t, 0.5, m.Value(), 1e-9)
}
