package recorder

import (
	"math/bits"
	"runtime"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/recording"
)

// The words of a record. The first one has, from the lowest bit: the type, the number of pairs, the tag, the
// number of the resource, and the instant, since the base of the block. The types of decisions are the
// outcomes of the package recording.
//
// The second one has the tag, and beside it, of a call that passed, how it ended, once it has; of one that
// was refused, the rule. A longer record has what more there is in the next pair, with the tag, and the sum
// of that and of the words that follow.
const (
	recordEnded   = 3 // a call whose guard has no space for the index of its record: the second word is its end
	recordSettled = 4 // its tokens in the second word, the time since it passed in the third
	recordNothing = 5
	recordTypes   = 7 // the mask

	lengthShift   = 3
	lengthMask    = 7
	tagShift      = lengthShift + 3
	tagBits       = 7
	tagMask       = 1<<tagBits - 1
	resourceShift = tagShift + tagBits
	instantShift  = resourceShift + nameBits

	maxPairs = lengthMask // of a record
)

// The second word: the tag is in the lowest bits.
const (
	endFlagShift  = tagBits // Flags
	durationShift = endFlagShift + 6
	maxDuration   = 1<<(64-durationShift) - 1
	valueShift    = tagBits // of the number of a rule, or of tokens
)

// storeWord writes a word as a whole, while others may read it. It says nothing about other words. It is no
// atomic operation, which costs as much as all else that is written: the memory model of Go has a word that
// is read be one that was written.
//
//go:norace
func storeWord(word *uint64, value uint64) {
	if bits.UintSize < 64 {
		atomic.StoreUint64(word, value)
		return
	}
	*word = value
}

// loadWord reads a word as a whole, while others may write it.
//
//go:norace
func loadWord(word *uint64) uint64 {
	if bits.UintSize < 64 {
		return atomic.LoadUint64(word)
	}
	return *word
}

//go:norace
func empty(words []uint64) { clear(words) }

// write writes the record of one pair. The second word of a call that passed is written when it ends.
func (r *ring) write(at claimedPairs, first, second uint64, now clock.Instant) {
	words := r.words[2*uint64(at.index):][:2]
	if first&recordTypes != uint64(recording.Passed) {
		storeWord(&words[1], second|at.tag)
	}
	storeWord(&words[0], first|1<<lengthShift|at.tag<<tagShift|uint64(now-at.base)<<instantShift)
}

// writeMore writes a record of several pairs. What more there is, without its tag, is the first word after the
// first pair; the second one is for the sum. They are an even number.
func (r *ring) writeMore(at claimedPairs, first, second uint64, more []uint64, now clock.Instant) {
	words := r.words[2*uint64(at.index):][:2+len(more)]
	more[0] |= at.tag
	more[1] = sumOf(at.index, more)
	for i, word := range more {
		storeWord(&words[2+i], word)
	}
	if first&recordTypes != uint64(recording.Passed) {
		storeWord(&words[1], second|at.tag)
	}
	pairs := uint64(len(words) / 2)
	storeWord(&words[0], first|pairs<<lengthShift|at.tag<<tagShift|uint64(now-at.base)<<instantShift)
}

// sumOf returns the sum of the words of a record of several pairs.
func sumOf(index uint32, more []uint64) uint64 {
	sum := splitmix.Mix(more[0] + uint64(index))
	for _, word := range more[2:] {
		sum = splitmix.Mix(sum + splitmix.Increment ^ word)
	}
	return sum
}

// end writes how a call ended that passed at an instant, if its record is still there.
func (r *ring) end(index uint32, resource uint64, start clock.Instant, end uint64) {
	if 2*uint64(index) >= uint64(len(r.words)) {
		return // it is that of another recorder
	}
	words := r.words[2*uint64(index):][:2]
	since := uint64(start - clock.Instant(r.blocks[index>>pairShift].base.Load()))
	first := loadWord(&words[0])
	if first&^(lengthMask<<lengthShift|tagMask<<tagShift) == resource|since<<instantShift {
		storeWord(&words[1], end|first>>tagShift&tagMask)
	}
}

// each calls fn with the words of each block that has any, without those that are no records.
func (r *ring) each(fn func(base clock.Instant, words []uint64)) {
	var words [2 * pairsOfBlock]uint64
	for i := range r.blocks {
		b := &r.blocks[i]
		for !b.lock.CompareAndSwap(0, 1) {
			runtime.Gosched()
		}
		base, records := clock.Instant(b.base.Load()), r.copyOf(b, words[:0])
		b.lock.Store(0)
		if len(records) > 0 {
			fn(base, records)
		}
	}
}

// copyOf appends a copy of the records of a block whose lock the caller has.
func (r *ring) copyOf(b *block, to []uint64) []uint64 {
	state := b.state.Load()
	claimed, tag := min(state>>claimShift, pairsOfBlock), state&tagMask
	if tag == 0 {
		return to // it was not used yet
	}
	words := r.words[2*b.first:][:2*claimed]
	for i := uint64(0); i < claimed; {
		first := loadWord(&words[2*i])
		for ; first == 0; first = loadWord(&words[2*i]) {
			runtime.Gosched() // the call was interrupted before it wrote
		}
		pairs := first >> lengthShift & lengthMask
		if first>>tagShift&tagMask != tag || pairs == 0 || i+pairs > claimed {
			raise(&r.lost, int64(r.latest(b))) // a record of an earlier use was written over one
			return to
		}
		if first&recordTypes != recordNothing {
			record, ok := appendRecord(to, words[2*i:2*(i+pairs)], b.first+uint32(i), tag)
			if to = record; !ok {
				raise(&r.lost, b.base.Load()+int64(first>>instantShift))
			}
		}
		i += pairs
	}
	return to
}

// appendRecord appends the words of a record, of which the first is there. It returns false if others are
// not, since those of an earlier use were written over them.
func appendRecord(to, words []uint64, index uint32, tag uint64) (record []uint64, ok bool) {
	before := len(to)
	for range awaitTries {
		to = to[:before]
		for i := range words {
			to = append(to, loadWord(&words[i]))
		}
		if isWhole(to[before:], index, tag) {
			return to, true
		}
		runtime.Gosched() // they are under way between processors
	}
	return to[:before], false
}

// awaitTries is how often words are looked for that were written before those that are there.
const awaitTries = 100

// isWhole says whether all words of a record are those of the first one.
func isWhole(words []uint64, index uint32, tag uint64) bool {
	second := words[1]
	hasSecond := words[0]&recordTypes != uint64(recording.Passed) || second != 0
	if hasSecond && second&tagMask != tag {
		return false
	}
	more := words[2:]
	return len(more) == 0 || more[0]&tagMask == tag && more[1] == sumOf(index, more)
}
