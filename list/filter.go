package list

import "math/bits"

// filter recognises most keys that a table does not have. It takes a seventh of the memory or
// less, so that it is in the caches of a processor when the table is not. It is a Bloom filter in
// which a key has all of its bits in one word (Putze, Sanders and Singler: Cache-, Hash- and
// Space-Efficient Bloom Filters).
//
// A small table has none, as it is in the caches itself. Then any key may be there.
type filter struct{ bits []uint64 }

const (
	filterFrom = 1 << 12 // keys
	bitsPerKey = 12      // so that it is wrong about one key of a hundred
)

// newFilter returns the filter of a table for so many keys.
func newFilter(keys int) filter {
	if keys < filterFrom {
		return filter{}
	}
	return filter{make([]uint64, keys*bitsPerKey/64)}
}

// add adds a key.
func (f *filter) add(hash uint64) {
	if len(f.bits) > 0 {
		word, own := f.of(hash)
		f.bits[word] |= own
	}
}

// mayHave returns false if the key was not added.
func (f *filter) mayHave(hash uint64) bool {
	if len(f.bits) == 0 {
		return true
	}
	word, own := f.of(hash)
	return f.bits[word]&own == own
}

// of returns the word of a key and the bits that are its own there.
func (f *filter) of(hash uint64) (word, own uint64) {
	word, _ = bits.Mul64(hash, uint64(len(f.bits)))
	return word, 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63)
}

func (f *filter) size() int64 { return 8 * int64(len(f.bits)) }
