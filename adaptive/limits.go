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

// of returns the limit of calls of a standing.
func (l limits) of(s shed.Standing) uint32 {
	if limit := uint32(l>>(uint(s)*limitBits)) & limitMask; limit != limitMask {
		return limit
	}
	return noLimit
}
