package list

import "math/bits"

// form is what narrow and wide levels do in different ways.
type form[K comparable] struct {
	hash func(K) uint64

	// join returns a key with a number behind it, without so many of the last bits.
	join func(key K, number uint16, without uint8) K

	behind int // see behind
}

func narrowForm(s seeds, level int) form[uint64] {
	return form[uint64]{s.narrowHash, func(key uint64, number uint16, without uint8) uint64 {
		return (key<<levelBits | uint64(number)) >> without
	}, behind(level)}
}

func wideForm(s seeds, level int) form[words] {
	return form[words]{s.wideHash, func(key words, number uint16, without uint8) words {
		return words{key.high, (key.low<<levelBits | uint64(number)) >> without}
	}, behind(level)}
}

func (s *seeds) narrowHash(key uint64) uint64 { return mix(key^s.a, s.b) }

func (s *seeds) wideHash(key words) uint64 { return mix(key.high^mix(key.low^s.b, s.a), s.b) }

// mix returns both halves of a product, one over the other.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
