package hotparam

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"

	"github.com/penstock-go/penstock/rule"
)

// hasher makes 64-bit hashes of values. Values of different types have different hashes:
// "7", 7 and true differ. So do ("a", "b/c") and ("a/b", "c"), as a composite value is
// hashed part by part.
//
// The seed is random, unless a test or a simulation gives one: nobody who chooses values
// can tell which of them collide.
type hasher struct {
	texts, numbers, booleans maphash.Seed
	combine                  uint64 // odd; joins the hashes of parts
	fixed                    uint64 // the seed that was given, or 0
}

func newHasher(seed uint64) *hasher {
	if seed != 0 {
		return &hasher{combine: scramble(seed) | 1, fixed: seed}
	}
	h := &hasher{texts: maphash.MakeSeed(), numbers: maphash.MakeSeed(), booleans: maphash.MakeSeed()}
	h.combine = maphash.String(maphash.MakeSeed(), "") | 1
	return h
}

// hash returns the hash of a value, which is set.
func (h *hasher) hash(value rule.Attribute) uint64 {
	if text, ok := value.Text(); ok {
		if h.fixed != 0 {
			return fixedHash(h.fixed, text)
		}
		return maphash.String(h.texts, text)
	}
	if number, ok := value.Number(); ok {
		return h.number(uint64(number))
	}
	if truth, ok := value.Boolean(); ok {
		return h.boolean(truth)
	}
	var hash uint64
	for _, part := range value.Parts() {
		hash = fold(hash^h.hash(part), h.combine)
	}
	return hash
}

func (h *hasher) number(number uint64) uint64 {
	if h.fixed != 0 {
		return scramble(number ^ h.fixed)
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], number)
	return maphash.Bytes(h.numbers, word[:])
}

func (h *hasher) boolean(truth bool) uint64 {
	word := [1]byte{}
	if truth {
		word[0] = 1
	}
	if h.fixed != 0 {
		return fold(uint64(word[0])^h.fixed, prime3)
	}
	return maphash.Bytes(h.booleans, word[:])
}

// Odd numbers without a pattern.
const (
	prime1 = 0xD6E8FEB86659FD93
	prime2 = 0xA0761D6478BD642F
	prime3 = 0xE7037ED1A0B428DB
)

// fixedHash is a hash of a text that depends on the seed alone. It spreads well, but who
// knows the seed can make texts that collide.
func fixedHash(seed uint64, text string) uint64 {
	hash := seed ^ uint64(len(text))<<56 // the rest of a text has no more than 7 bytes
	for len(text) >= 8 {
		word := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		hash = fold(hash^word, prime1)
		text = text[8:]
	}
	last := uint64(0)
	for i := range len(text) {
		last |= uint64(text[i]) << (8 * i)
	}
	return scramble(fold(hash^last, prime2))
}

// fold multiplies two numbers and joins the halves of the product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a^prime3, b)
	return high ^ low
}

// scramble spreads the bits of a number; no two numbers become the same.
func scramble(x uint64) uint64 {
	x ^= x >> 32
	x *= prime1
	x ^= x >> 29
	x *= prime3
	return x ^ x>>32
}
