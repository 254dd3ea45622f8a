// Package valuehash makes hashes of the values of attributes, for limiters that keep a state for each.
package valuehash

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"

	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/rule"
)

// Hasher makes 64-bit hashes of values. Values of different types have different hashes:
// "7", 7 and true differ. So do ("a", "b/c") and ("a/b", "c"), as a composite value is
// hashed part by part.
//
// The seed is random, unless a test or a simulation gives one: nobody who chooses values
// can tell which of them collide.
type Hasher struct {
	texts, numbers, booleans maphash.Seed
	combine                  uint64 // odd; joins the hashes of parts
	fixed                    uint64 // the seed that was given, or 0
}

// New returns a hasher with a seed, or with one that nobody knows if it is 0.
func New(seed uint64) *Hasher {
	if seed != 0 {
		return &Hasher{combine: splitmix.Mix(seed) | 1, fixed: seed}
	}
	h := &Hasher{texts: maphash.MakeSeed(), numbers: maphash.MakeSeed(), booleans: maphash.MakeSeed()}
	h.combine = maphash.String(maphash.MakeSeed(), "") | 1
	return h
}

// Hash returns the hash of a value. Those that are not set have one together.
func (h *Hasher) Hash(value rule.Attribute) uint64 {
	if text, ok := value.Text(); ok {
		if h.fixed != 0 {
			return textHash(h.fixed, text)
		}
		return maphash.String(h.texts, text)
	}
	if number, ok := value.Number(); ok {
		return h.number(uint64(number))
	}
	if truth, ok := value.Boolean(); ok {
		return h.boolean(truth)
	}
	parts := value.Parts()
	if parts == nil {
		return h.combine
	}
	var hash uint64
	for _, part := range parts {
		hash = fold(hash^h.Hash(part), h.combine)
	}
	return hash
}

func (h *Hasher) number(number uint64) uint64 {
	if h.fixed != 0 {
		return splitmix.Mix(number ^ h.fixed)
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], number)
	return maphash.Bytes(h.numbers, word[:])
}

func (h *Hasher) boolean(truth bool) uint64 {
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

// textHash is a hash of a text that depends on the seed alone. It spreads well, but who
// knows the seed can make texts that collide.
func textHash(seed uint64, text string) uint64 {
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
	return splitmix.Mix(fold(hash^last, prime2))
}

// fold multiplies two numbers and joins the halves of the product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a^prime3, b)
	return high ^ low
}
