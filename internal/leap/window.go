package leap

import (
	"math"
	"sync/atomic"
)

// Outcome is what became of an attempt to take tokens from a [Window].
type Outcome int

// The outcomes of [Window.Take].
const (
	// Taken tells that the tokens are counted.
	Taken Outcome = iota
	// Full tells that fewer tokens remain.
	Full
	// NotOpen tells that another bucket than the one named is open, or none.
	NotOpen
)

// Window is a leap array that admits no more than a limit. It counts the tokens
// taken in each of its last buckets. The last bucket is open; how many tokens remain
// in it is computed when it is opened. Buckets are numbered: the time since the epoch
// divided by their length.
//
// Take, Check, TryCount and TryGiveBack are lock-free, allocate nothing and are
// safe for concurrent use, also with the other methods. The others must be called
// by one goroutine at a time, which opens the bucket that a caller finds not open.
type Window struct {
	// state packs the low 32 bits of the open bucket's number and the remaining
	// tokens, a signed 32-bit count: below zero when the limit was lowered under what
	// had been taken, or when more was counted than taken. It is one word, so that
	// checking and taking are one compare-and-swap, and a refusal is one load.
	state atomic.Uint64

	open    int64   // the bucket that is open, or was until Close
	opening int64   // what would remain in it if nothing had been taken; closed: what was taken
	taken   []int64 // tokens taken in the closed buckets, a ring by number
}

// NewWindow returns an empty window of so many buckets, the given one being the
// last. It is closed.
func NewWindow(buckets int, last int64) *Window {
	w := new(Window)
	w.Resize(buckets, last)
	return w
}

// Copy makes a window hold what another one does, in its own memory. The other one must be closed, and
// then the window is.
func (w *Window) Copy(other *Window) {
	w.open, w.opening, w.taken = other.open, other.opening, append(w.taken[:0], other.taken...)
	w.state.Store(other.state.Load())
}

// Take takes n tokens in the bucket if it is open and so many remain.
func (w *Window) Take(bucket int64, n int32) Outcome {
	for {
		state := w.state.Load()
		if !isOpen(state, bucket) {
			return NotOpen
		}
		remaining := remainingOf(state)
		if remaining < int64(n) {
			return Full
		}
		if w.state.CompareAndSwap(state, packState(bucket, remaining-int64(n))) {
			return Taken
		}
	}
}

// Check is Take, without taking anything: Taken tells that so many tokens remain.
func (w *Window) Check(bucket int64, n int32) Outcome {
	switch state := w.state.Load(); {
	case !isOpen(state, bucket):
		return NotOpen
	case remainingOf(state) < int64(n):
		return Full
	}
	return Taken
}

// TryCount counts n tokens in the bucket if it is open, however many remain. What
// exceeds the limit by more than 10⁹ is not counted.
func (w *Window) TryCount(bucket int64, n int32) bool {
	for {
		state := w.state.Load()
		if !isOpen(state, bucket) {
			return false
		}
		remaining := max(math.MinInt32, remainingOf(state)-int64(n))
		if w.state.CompareAndSwap(state, packState(bucket, remaining)) {
			return true
		}
	}
}

// TryGiveBack returns n tokens that were taken in the bucket, if it is still open.
func (w *Window) TryGiveBack(bucket int64, n int32) bool {
	for {
		state := w.state.Load()
		if !isOpen(state, bucket) {
			return false
		}
		if w.state.CompareAndSwap(state, packState(bucket, remainingOf(state)+int64(n))) {
			return true
		}
	}
}

// GiveBack returns n tokens that were taken in a bucket, while the window is
// closed. It returns false when that bucket has left the window: then there is nothing
// to return.
func (w *Window) GiveBack(bucket int64, n int32) bool {
	if bucket > w.open || bucket <= w.open-int64(len(w.taken)) {
		return false
	}
	w.taken[w.slot(bucket)] -= int64(n)
	if bucket == w.open {
		w.opening -= int64(n)
	}
	return true
}

// OpenBucket returns the number of the bucket that is open.
func (w *Window) OpenBucket() int64 { return w.open }

// Remaining returns how many tokens may still be taken in the open bucket, less than
// zero when more were taken than the present limit allows.
func (w *Window) Remaining() int64 { return remainingOf(w.state.Load()) }

// Taken returns how many tokens were taken in the open bucket.
func (w *Window) Taken() int64 { return w.opening - w.Remaining() }

// Close shuts the open bucket and returns how many tokens were taken in it. Nothing
// can be taken until Open, for that bucket again or for a later one.
func (w *Window) Close() (taken int64) {
	// The number that differs in its highest bit is half the range away from
	// any bucket that a caller could mean.
	state := w.state.Swap(packState(w.open^1<<31, 0))
	w.opening -= remainingOf(state)
	w.taken[w.slot(w.open)] = w.opening
	return w.opening
}

// Held returns how many tokens the window would hold with the given bucket as
// its last, which is the open one or a later one.
func (w *Window) Held(bucket int64) int64 {
	first := bucket - int64(len(w.taken)) + 1
	if first > w.open {
		return 0
	}
	sum := w.Taken()
	for b := first; b < w.open; b++ {
		sum += w.taken[w.slot(b)]
	}
	return sum
}

// HeldOver returns the sum of what the window would hold with each bucket from the
// open one to the one before the given one as its last.
func (w *Window) HeldOver(bucket int64) (sum int64) {
	span := int64(len(w.taken))
	sum = w.Taken() * max(0, min(bucket-w.open, span))
	for b := w.open - span + 1; b < w.open; b++ {
		sum += w.taken[w.slot(b)] * max(0, min(bucket, b+span)-w.open)
	}
	return sum
}

// Open opens a bucket, the one that was closed or a later one. The window then holds
// at most limit tokens, that bucket included.
func (w *Window) Open(bucket, limit int64) {
	remaining := max(-1<<30, limit-w.Held(bucket)) // as many more can still be counted
	for b := max(w.open, bucket-int64(len(w.taken))) + 1; b <= bucket; b++ {
		w.taken[w.slot(b)] = 0
	}
	w.open = bucket
	w.opening = remaining + w.taken[w.slot(bucket)]
	w.state.Store(packState(bucket, remaining))
}

// FreeIn returns after how many buckets from the open one n tokens will remain, given
// that fewer remain now and nothing else is taken. The answer holds for an n that is
// not more than the limit. When the bucket extra leaves, one token fewer becomes free.
func (w *Window) FreeIn(n int32, remaining, extra int64) (buckets int64) {
	missing := int64(n) - remaining
	for b := w.open - int64(len(w.taken)) + 1; b < w.open; b++ {
		missing -= w.taken[w.slot(b)]
		if b == extra {
			missing++
		}
		if missing <= 0 {
			return b + int64(len(w.taken)) - w.open
		}
	}
	return int64(len(w.taken))
}

// TakenIn returns how many tokens of a closed bucket the window holds. The bucket
// is one of the window that has the open one as its last.
func (w *Window) TakenIn(bucket int64) int64 { return w.taken[w.slot(bucket)] }

// Resize empties the window and gives it another number of buckets, of another
// length. It must be closed, as the zero value is, and stays so. last is the bucket, of
// the new length, that is the present one.
func (w *Window) Resize(buckets int, last int64) {
	w.taken, w.open, w.opening = make([]int64, buckets), last, 0
	w.state.Store(packState(last^1<<31, 0))
}

// Put counts n tokens in a bucket, however many remain, while the window is closed.
// What would count in a later bucket than the present one counts in the present one.
// It returns the bucket, and false when that has left the window.
func (w *Window) Put(bucket, n int64) (in int64, ok bool) {
	in = min(bucket, w.open)
	if in <= w.open-int64(len(w.taken)) {
		return in, false
	}
	w.taken[w.slot(in)] += n
	if in == w.open {
		w.opening += n
	}
	return in, true
}

func (w *Window) slot(bucket int64) int { return floorMod(bucket, len(w.taken)) }

func floorMod(bucket int64, n int) int {
	i := int(bucket % int64(n))
	if i < 0 { // times before the epoch
		i += n
	}
	return i
}

func packState(bucket, remaining int64) uint64 {
	return uint64(bucket)<<32 | uint64(uint32(int32(remaining)))
}

func isOpen(state uint64, bucket int64) bool { return uint32(state>>32) == uint32(bucket) }

func remainingOf(state uint64) int64 { return int64(int32(uint32(state))) }
