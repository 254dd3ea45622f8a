package chart

import (
	"math"
	"strconv"
	"strings"
)

// scale is an axis from zero to a round number.
type scale struct {
	top, step float64
}

// newScale returns a scale for numbers up to the largest one, with about so many
// steps.
func newScale(largest float64, steps int) scale {
	if largest <= 0 {
		largest = 1
	}
	step := roundUp(largest / float64(steps))
	return scale{top: step * math.Ceil(largest/step), step: step}
}

// roundUp returns the next number of 1, 2 and 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, factor := range []float64{1, 2, 5} {
		if v <= factor*power*(1+1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// ticks returns the numbers that the axis is marked at, from zero.
func (s scale) ticks() []float64 {
	var ticks []float64
	for i := 0; ; i++ {
		v := float64(i) * s.step
		if v > s.top*(1+1e-9) {
			return ticks
		}
		ticks = append(ticks, v)
	}
}

// secondsStep returns how far apart the marks of the time axis are, so that no
// more than most are made.
func secondsStep(seconds, most int) int {
	return max(1, int(roundUp(float64(seconds)/float64(max(1, most)))))
}

// figure writes a number for readers: 1,000,000 or 333.4.
func figure(v float64) string {
	text := strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 100:
		text = strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}
