package leap

import (
	"iter"
	"sync/atomic"
)

// tally counts the events of one kind in the open second, and sums up a quantity that they
// have. Both are in one word, with a tag of the second:
//
//	tag, 12 bits | events, 20 bits | sum, 32 bits
//
// So an event costs one compare-and-swap, and cannot be counted in another second. The node
// moves counts out of the word, under its mutex, when the second ends or the word is full.
type tally struct{ word atomic.Uint64 }

// sums are what was moved out of the word of a tally. Node.mu guards them.
type sums struct {
	open   count // in the open second
	before count // in all seconds before it
}

// count is a number of events and the sum of their quantities.
type count struct{ events, sum uint64 }

func (c *count) add(more count) {
	c.events += more.events
	c.sum += more.sum
}

// take takes away what was added before. Until what is in the word is added, both may wrap
// around.
func (c *count) take(less count) {
	c.events -= less.events
	c.sum -= less.sum
}

const (
	sumBits   = 32
	eventBits = 20
	tagShift  = sumBits + eventBits

	maxSum    = 1<<sumBits - 1
	maxEvents = 1<<eventBits - 1

	tagMask = 1<<(64-tagShift-1) - 1
	closed  = 1 << (64 - tagShift - 1) // the tag of no second
)

// tagOf returns the tag of a second, which the next one has after half an hour. The number
// of the node's second, read just before, rules that one out.
func tagOf(second int64) uint64 { return uint64(second) & tagMask }

// tryAdd counts an event if the word is open for the tag and not full.
func (t *tally) tryAdd(tag, quantity uint64) (events uint64, ok bool) {
	for {
		old := t.word.Load()
		if !fits(old, tag, quantity) {
			return 0, false
		}
		next := old + 1<<sumBits + quantity
		if t.word.CompareAndSwap(old, next) {
			return next >> sumBits & maxEvents, true
		}
	}
}

// inWord returns what the word has counted for the tag; false if it is not open
// for it.
func (t *tally) inWord(tag uint64) (count, bool) {
	word := t.word.Load()
	return unpack(word), word>>tagShift == tag
}

// canAdd says whether tryAdd could succeed.
func (t *tally) canAdd(tag, quantity uint64) bool { return fits(t.word.Load(), tag, quantity) }

func fits(word, tag, quantity uint64) bool {
	return word>>tagShift == tag && word&maxSum+quantity <= maxSum && word>>sumBits&maxEvents < maxEvents
}

// reopen lets the word count for a tag.
func (t *tally) reopen(tag uint64) { t.word.Store(tag << tagShift) }

// take returns what the word has counted, which starts over at nothing. Nothing
// can be added until it is opened again.
func (t *tally) take() count { return unpack(t.word.Swap(closed << tagShift)) }

func unpack(word uint64) count { return count{word >> sumBits & maxEvents, word & maxSum} }

// account is the tallies of one kind of events, with the sums of all of them.
type account struct {
	first *tally
	more  []tally
	*sums
}

// tallies returns all tallies of the account.
func (a account) tallies() iter.Seq[*tally] {
	return func(yield func(*tally) bool) {
		for i := range a.more {
			if !yield(&a.more[i]) {
				return
			}
		}
		yield(a.first)
	}
}

// second returns what was counted in the open second.
func (a account) second() count {
	c := a.open
	for t := range a.tallies() {
		c.add(unpack(t.word.Load()))
	}
	return c
}

// total returns what was counted ever.
func (a account) total() count {
	c := a.second()
	c.add(a.before)
	return c
}

// end makes what was counted since the second was opened part of what was before
// it. The words are closed.
func (a account) end() {
	a.before.add(a.open)
	a.open = count{}
}

// reopen lets the words count for a tag.
func (a account) reopen(tag uint64) {
	for t := range a.tallies() {
		t.reopen(tag)
	}
}
