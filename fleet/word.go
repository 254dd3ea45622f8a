package fleet

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// word is what a decision of a [Budget] is made from, in one atomic word:
//
//	63        29   28   27      0
//	end        quiet    tokens
//
// end is the instant up to which the tokens may be used, in units of 2¹⁸ ns (262 µs). It
// wraps around, so that it can lie up to 52 days ahead. quiet says that the next call that
// wants tokens must wake the member. tokens are biased by zeroTokens, so that a budget can
// owe some.
type word uint64

const (
	tokenBits  = 28
	tokenMask  = 1<<tokenBits - 1
	zeroTokens = 1 << (tokenBits - 1)
	quietBit   = 1 << tokenBits
	endShift   = tokenBits + 1
	unitShift  = 18

	// maxTokens is how many tokens a budget can hold or owe.
	maxTokens = zeroTokens - 1<<24

	// never is the last instant there is.
	never = clock.Instant(math.MaxInt64)

	// forever is the end of tokens that do not end.
	forever = 50 * 24 * time.Hour
)

// newWord returns a word. The tokens may be used before the end, which is rounded down.
func newWord(end clock.Instant, isQuiet bool, tokens int64) word {
	w := word(end>>unitShift-1)<<endShift | word(clampTokens(tokens)+zeroTokens)
	if isQuiet {
		w |= quietBit
	}
	return w
}

// hasEnded says whether the tokens may not be used at now any more.
func (w word) hasEnded(now clock.Instant) bool {
	return int64(w-word(now>>unitShift)<<endShift) < 0
}

// has says whether n tokens may be used at now.
func (w word) has(now clock.Instant, n int32) bool {
	return int64(w-word(now>>unitShift)<<endShift) >= 0 && w&tokenMask >= zeroTokens+word(n)
}

// wholeUnit is the greatest instant at which words can end that is not after the given one.
func wholeUnit(end clock.Instant) clock.Instant { return end &^ (1<<unitShift - 1) }

func (w word) tokens() int64 { return int64(w&tokenMask) - zeroTokens }

func (w word) isQuiet() bool { return w&quietBit != 0 }

// plus returns the word with more tokens, or less.
func (w word) plus(tokens int64) word {
	return w&^tokenMask | word(clampTokens(w.tokens()+tokens)+zeroTokens)
}

func clampTokens(tokens int64) int64 { return min(max(tokens, -maxTokens), maxTokens) }
