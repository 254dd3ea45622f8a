package sharing

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// packedTokens is what a decision of a [Budget] is made from, in one atomic word:
//
//	63        29   28   27      0
//	end        quiet    tokens
//
// end is the instant up to which the tokens may be used, in units of 2¹⁸ ns (262 µs). It
// wraps around, so that it can lie up to 52 days ahead. quiet says that the next call that
// wants tokens must wake the member. tokens are biased by zeroTokens, so that a budget can
// owe some.
type packedTokens uint64

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

// pack returns tokens that may be used before the end, which is rounded down.
func pack(end clock.Instant, isQuiet bool, tokens int64) packedTokens {
	p := packedTokens(end>>unitShift-1)<<endShift | packedTokens(clampTokens(tokens)+zeroTokens)
	if isQuiet {
		p |= quietBit
	}
	return p
}

// hasEnded says whether the tokens may not be used at now any more.
func (p packedTokens) hasEnded(now clock.Instant) bool {
	return int64(p-packedTokens(now>>unitShift)<<endShift) < 0
}

// has says whether n tokens may be used at now.
func (p packedTokens) has(now clock.Instant, n int32) bool {
	return int64(p-packedTokens(now>>unitShift)<<endShift) >= 0 && p&tokenMask >= zeroTokens+packedTokens(n)
}

// wholeUnit is the greatest instant at which tokens can end that is not after the given one.
func wholeUnit(end clock.Instant) clock.Instant { return end &^ (1<<unitShift - 1) }

func (p packedTokens) tokens() int64 { return int64(p&tokenMask) - zeroTokens }

func (p packedTokens) isQuiet() bool { return p&quietBit != 0 }

// plus returns them with more tokens, or less.
func (p packedTokens) plus(tokens int64) packedTokens {
	return p&^tokenMask | packedTokens(clampTokens(p.tokens()+tokens)+zeroTokens)
}

func clampTokens(tokens int64) int64 { return min(max(tokens, -maxTokens), maxTokens) }
