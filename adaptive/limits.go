package adaptive

import (
	"math"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
)

// limits is how many calls may be under way, by where a call stands to the threshold of
// what is shed: a call passes while fewer than that are under way. It is one word, so
// that a call reads all of it at once.
type limits uint64

const (
	limitBits = 21
	limitMask = 1<<limitBits - 1

	// noLimit is the limit of a rule that limits no calls under way.
	noLimit = math.MaxUint32
)

func makeLimits(above, edge, below uint32) limits {
	return limits(min(above, limitMask)) | limits(min(edge, limitMask))<<limitBits | limits(min(below, limitMask))<<(2*limitBits)
}

// foundFull is the share of the more important calls, if they come at random, that may find
// a limit reached because of the others.
const foundFull = 0.0075

// reserveFor returns how much of a limit is left to the more important calls, of which so many
// would be under way: as much as they need, by Erlang's formula for what comes on top of a limit
// that others always reach, but at most a half.
func reserveFor(limit uint32, important float64) (reserve uint32) {
	if important <= 0 {
		return 0
	}
	sum, term := 1., 1. // how much more often fewer are under way than when the limit is reached
	for reserve < limit/2 && sum*foundFull < 1 {
		term *= float64(limit-reserve) / important
		sum += term
		reserve++
	}
	return reserve
}

// of returns the limit of calls of a standing.
func (l limits) of(s shed.Standing) uint32 {
	if limit := uint32(l>>(uint(s)*limitBits)) & limitMask; limit != limitMask {
		return limit
	}
	return noLimit
}
