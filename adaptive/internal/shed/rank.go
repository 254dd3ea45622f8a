package shed

import (
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

// A rank is a level, a position within it, and a part that is random for every call, by
// which the threshold can divide the calls of one position. A higher rank is refused later.
const (
	// Levels is the number of priorities.
	Levels = rule.PriorityLevels

	positions    = 64
	positionBits = 6
	randomBits   = 7
	levelShift   = positionBits + randomBits
	positionMask = positions - 1
	randomMask   = 1<<randomBits - 1
	maxRank      = Levels<<levelShift - 1

	// Calls whose callers are not known are counted in a bucket of their own.
	unknownCallers = positions
	buckets        = positions + 1
)

// PriorityOf returns the priority of a level.
func PriorityOf(level int) rule.Priority { return rule.Priority(level) + rule.PrioritySheddable }

// bucketOf returns the position of a caller before any rotation, and the random part of
// the rank of the call. A call whose caller is not known has a random position.
// The nonce should differ from call to call.
func bucketOf(h *valuehash.Hasher, caller rule.Attribute, nonce uint64) (bucket, random uint32) {
	mixed := splitmix.Mix(nonce)
	random = uint32(mixed) & randomMask
	if caller.IsSet() {
		mixed = h.Hash(caller)
	}
	return uint32(mixed >> (64 - positionBits)), random
}
