package breaker

import "math/bits"

// lastCalls are the outcomes of the last so many calls, a bit each: 1 for a bad one. The breaker's
// mutex guards them.
type lastCalls struct {
	bad  []uint64 // outcome i is bit i%64 of word i/64
	size int      // how many there can be
	held int      // how many there are
	next int      // where the next goes: there the oldest is, if held is size
}

// newLastCalls returns a table for that many outcomes; the zero value for 0.
func newLastCalls(size int) lastCalls {
	return lastCalls{bad: make([]uint64, (size+63)/64), size: size}
}

func (c *lastCalls) isBad(i int) bool { return c.bad[i/64]>>(i%64)&1 != 0 }

// push adds an outcome, and returns what that changes: the oldest goes if the table is full. The
// numbers are to be added, and may be those of -1.
func (c *lastCalls) push(isBad bool) (change tally) {
	if c.held < c.size {
		c.held++
		change.calls = 1
	}
	if c.isBad(c.next) {
		change.bad--
		c.bad[c.next/64] &^= 1 << (c.next % 64)
	}
	if isBad {
		change.bad++
		c.bad[c.next/64] |= 1 << (c.next % 64)
	}
	c.next = (c.next + 1) % c.size
	return change
}

// leaving returns the outcomes that the next calls push out, up to so many, the first lowest. A
// place that is empty is a 0.
func (c *lastCalls) leaving(most int) (word uint64) {
	for i := range min(most, c.size) {
		if c.isBad((c.next + i) % c.size) {
			word |= 1 << i
		}
	}
	return word
}

// badRun returns how many of the latest outcomes are bad.
func (c *lastCalls) badRun() (n int) {
	for n < c.held && c.isBad((c.next-1-n+c.size)%c.size) {
		n++
	}
	return n
}

// moveTo pushes the outcomes into another table, the oldest first.
func (c *lastCalls) moveTo(to *lastCalls) (sum tally) {
	for i := c.held; i > 0; i-- {
		change := to.push(c.isBad((c.next - i + c.size) % c.size))
		sum.calls += change.calls
		sum.bad += change.bad
	}
	return sum
}

// In a window of the last calls a word of recent outcomes has, below the mark and the stamp, how
// many outcomes there are and, in its lower half, the outcomes, the first lowest.
const (
	batchBits       = 32
	batchMask       = 1<<batchBits - 1
	batchShift      = batchBits
	batchLengthMask = 1<<6 - 1

	oneInBatch uint64 = 1 << batchShift
)

func batchLength(recent uint64) int { return int(recent >> batchShift & batchLengthMask) }

// addToBatch returns the word with one outcome more, and what the window of the last size calls then
// holds. It returns false if the word is full.
func (w *window) addToBatch(recent uint64, size int, o outcome) (next uint64, total tally, ok bool) {
	n := batchLength(recent)
	if n >= min(batchBits, size) {
		return 0, tally{}, false
	}
	next = recent + oneInBatch
	if o == bad {
		next |= 1 << n
	}
	return next, w.withBatch(next, size), true
}

// withBatch returns what the window holds together with a word of recent outcomes.
func (w *window) withBatch(recent uint64, size int) tally {
	n := batchLength(recent)
	gone := bits.OnesCount64(w.leaving.Load() & (1<<n - 1))
	return tally{
		calls: min(w.calls.Load()+uint64(n), uint64(size)),
		bad:   w.bad.Load() + uint64(bits.OnesCount64(recent&batchMask)) - uint64(gone),
	}
}

// flushBatch moves the outcomes of a word to the table.
func (w *window) flushBatch(recent uint64) {
	for i := range batchLength(recent) {
		w.push(recent>>i&1 != 0)
	}
}

func (w *window) push(isBad bool) {
	change := w.last.push(isBad)
	w.calls.Add(change.calls)
	w.bad.Add(change.bad)
}

// resize goes over to the last so many calls, and keeps the outcomes. The window must be frozen.
func (w *window) resize(size int) {
	before := w.last
	w.last = newLastCalls(size)
	sum := before.moveTo(&w.last)
	w.calls.Store(sum.calls)
	w.bad.Store(sum.bad)
}

// badRun returns how many of the latest calls were bad, one after the other.
func (w *window) badRun() uint64 {
	recent := w.recent.Load()
	if recent&frozen != 0 {
		recent = 0 // it is in the table
	}
	n := batchLength(recent)
	if run := bits.LeadingZeros64(^(recent << (64 - n))); run < n {
		return uint64(run)
	}
	return uint64(min(n+w.last.badRun(), w.last.size))
}
