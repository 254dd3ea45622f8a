package scenario

import (
	"math"
	"strconv"
	"strings"
)

// want is what one number is expected to be.
type want struct {
	low, high float64
	any       bool // or nothing at all
	none      bool // no number, which NaN stands for
	text      string

	value float64 // in the middle of low and high, of a want that is one number
	exact bool    // it is one number without a tolerance of its own
}

// parseWant reads a number, a range that may be open at one end, "_" for any or
// "none".
func parseWant(text string, u unit) (want, bool) {
	w := want{text: text}
	from, to, isRange := strings.Cut(text, "..")
	switch {
	case text == "_":
		w.any = true
	case text == "none" && u.none:
		w.none = true
	case isRange:
		low, fine := u.bound(from, math.Inf(-1))
		high, fine2 := u.bound(to, math.Inf(1))
		w.low, w.high = low, high
		return w, fine && fine2 && from+to != "" && low <= high
	default:
		value, slack, ok := u.parse(text)
		w.value, w.low, w.high, w.exact = value, value-slack, value+slack, true
		return w, ok
	}
	return w, true
}

// bound reads one end of a range.
func (u unit) bound(text string, open float64) (float64, bool) {
	if text == "" {
		return open, true
	}
	v, _, ok := u.parse(text)
	return v, ok
}

// within returns the number with a tolerance, such as 5 or 5%.
func (w want) within(tolerance string, u unit) (want, bool) {
	var by float64
	var ok bool
	if percent, relative := strings.CutSuffix(tolerance, "%"); relative {
		share, err := strconv.ParseFloat(percent, 64)
		by, ok = w.value*share/100, err == nil && share >= 0 && !math.IsInf(share, 0)
	} else {
		by, _, ok = u.parse(tolerance)
	}
	by *= 1 + 1e-9 // so that 8.2 is within 8.3±0.1, which floating point misses by a bit
	w.low, w.high, w.exact = w.value-by, w.value+by, false
	w.text += " ±" + tolerance
	return w, ok
}

// holds says whether a number is as expected.
func (w want) holds(got float64) bool {
	switch {
	case w.any:
		return true
	case math.IsNaN(got):
		return w.none
	default:
		return !w.none && got >= w.low && got <= w.high
	}
}
