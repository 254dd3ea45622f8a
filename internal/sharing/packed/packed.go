// Package packed has what decides on a call that takes leased tokens, in one atomic word.
package packed

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Tokens is what a decision about leased tokens is made from, in one atomic word:
//
//	63        29   28   27      0
//	end        quiet    tokens
//
// end is the instant up to which the tokens may be used, in units of 2¹⁸ ns (262 µs). It
// wraps around, so that it can lie up to 52 days ahead. quiet says that the next call that
// wants tokens must wake the member. tokens are biased by zeroTokens, so that a budget can
// owe some.
type Tokens uint64

const (
	tokenBits  = 28
	tokenMask  = 1<<tokenBits - 1
	zeroTokens = 1 << (tokenBits - 1)
	endShift   = tokenBits + 1
	unitShift  = 18

	// QuietBit is the bit that is quiet, see [Tokens].
	QuietBit = 1 << tokenBits

	// Unit is the unit of the end.
	Unit = time.Duration(1 << unitShift)

	// MaxTokens is how many tokens a budget can hold or owe.
	MaxTokens = zeroTokens - 1<<24

	// Forever is the end of tokens that do not end.
	Forever = 50 * 24 * time.Hour
)

// Pack returns tokens that may be used before the end, which is rounded down.
func Pack(end clock.Instant, isQuiet bool, tokens int64) Tokens {
	p := Tokens(end>>unitShift-1)<<endShift | Tokens(clampTokens(tokens)+zeroTokens)
	if isQuiet {
		p |= QuietBit
	}
	return p
}

// HasEnded says whether the tokens may not be used at now any more.
func (p Tokens) HasEnded(now clock.Instant) bool {
	return int64(p-Tokens(now>>unitShift)<<endShift) < 0
}

// Left returns how long it takes until the tokens end, rounded up to the unit of the end.
func (p Tokens) Left(now clock.Instant) time.Duration {
	units := int64(p-Tokens(now>>unitShift)<<endShift) >> endShift
	return time.Duration(units<<unitShift) + Unit - time.Duration(now&(1<<unitShift-1))
}

// Has says whether n tokens may be used at now.
func (p Tokens) Has(now clock.Instant, n int32) bool {
	return int64(p-Tokens(now>>unitShift)<<endShift) >= 0 && p&tokenMask >= zeroTokens+Tokens(n)
}

// WholeUnit is the greatest instant at which tokens can end that is not after the given one.
func WholeUnit(end clock.Instant) clock.Instant { return end &^ (1<<unitShift - 1) }

// Tokens returns how many there are; below 0, how many are owed.
func (p Tokens) Tokens() int64 { return int64(p&tokenMask) - zeroTokens }

// IsQuiet says whether the next call that wants tokens must wake the member.
func (p Tokens) IsQuiet() bool { return p&QuietBit != 0 }

// Plus returns them with more tokens, or less.
func (p Tokens) Plus(tokens int64) Tokens {
	return p&^tokenMask | Tokens(clampTokens(p.Tokens()+tokens)+zeroTokens)
}

func clampTokens(tokens int64) int64 { return min(max(tokens, -MaxTokens), MaxTokens) }
