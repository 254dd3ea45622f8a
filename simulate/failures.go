package simulate

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
)

// The errors that simulated calls fail with.
var (
	errFailed   = errors.New("simulate: the call failed")
	errTimedOut = errors.New("simulate: the call timed out")
)

// share is a number from 0 to 1 as a fraction, exact in decimal digits.
type share struct{ numerator, denominator uint64 }

// newShare returns the share that a number is written as. Digits beyond the
// 18th decimal do not count: no simulation has that many calls.
func newShare(f float64) share {
	const decimals = 18
	if f >= 1 {
		return share{1, 1}
	}
	_, digits, _ := strings.Cut(strconv.FormatFloat(f, 'f', -1, 64), ".")
	digits = digits[:min(decimals, len(digits))]
	s := share{0, 1}
	for _, digit := range digits {
		s.numerator = s.numerator*10 + uint64(digit-'0')
		s.denominator *= 10
	}
	return s
}

// includes says whether the k-th of a sequence, counted from 0, belongs to the
// share when the share is spread evenly: whether ⌊(k+1)·share⌋ > ⌊k·share⌋.
func (s share) includes(k uint64) bool {
	if s.numerator == 0 {
		return false
	}
	high, low := bits.Mul64(k, s.numerator)
	_, rest := bits.Div64(high%s.denominator, low, s.denominator) // k·share, less whole numbers
	return rest+s.numerator >= s.denominator
}
