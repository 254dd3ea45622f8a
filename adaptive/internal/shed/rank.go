package shed

import (
	"math/bits"

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
func bucketOf(seed uint64, caller *rule.Attribute, nonce uint64) (bucket, random uint32) {
	mixed := mix(seed ^ nonce)
	random = uint32(mixed) & randomMask
	if caller.IsSet() {
		mixed = hash(seed, caller)
	}
	return uint32(mixed >> (64 - positionBits)), random
}

// hash returns a hash of a caller that nobody can foresee who does not know the seed.
func hash(seed uint64, caller *rule.Attribute) uint64 {
	if text, ok := caller.Text(); ok {
		return hashText(seed, text)
	}
	if number, ok := caller.Number(); ok {
		return mix(bits.RotateLeft64(seed, 21) ^ uint64(number))
	}
	if truth, ok := caller.Boolean(); ok && truth {
		return mix(seed + 1)
	}
	h := seed
	parts := caller.Parts()
	for i := range parts {
		h = mix(h ^ hash(seed, &parts[i]))
	}
	return h
}

func hashText(seed uint64, text string) uint64 {
	h := seed ^ uint64(len(text))
	for ; len(text) >= 8; text = text[8:] {
		h = mix(h ^ (uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56))
	}
	for i := range len(text) {
		h ^= uint64(text[i]) << (8 * i)
	}
	return mix(h)
}

// mix spreads the bits of a number over all of them.
func mix(x uint64) uint64 {
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return x ^ x>>32
}
