package stat

import (
	"math"
	"slices"
	"sync/atomic"
)

// Outcome is what became of an attempt to take tokens from a [Window].
type Outcome int

// The outcomes of [Window.Take].
const (
	// Taken tells that the tokens are counted.
	Taken Outcome = iota
	// Full tells that the window has no room for them.
	Full
	// NotOpen tells that another bucket than the one named is open, or none.
	NotOpen
)

// Window is a leap array that admits no more than a ceiling. It counts the
// tokens taken in each of its last buckets; the last of them is open, and what
// may still be taken in it, the room, is settled when it is opened. Buckets are
// named by their number, the time since the epoch divided by their length.
//
// Take, Check, TryCount and TryGiveBack are lock-free, allocate nothing and are
// safe for concurrent use, also with the other methods. The others must be called
// by one goroutine at a time. Whoever finds the window not open asks that goroutine.
type Window struct {
	// state packs the low 32 bits of the open bucket's number and the room, a
	// signed 32-bit count: below zero when the ceiling was lowered under what
	// had been taken, or more was counted than taken. One word, so that checking for room and taking it are one
	// compare-and-swap, and a refusal is one load.
	state atomic.Uint64

	open    int64   // the bucket that is open, or was until Close
	opening int64   // its room, were nothing taken in it; closed: what was taken
	taken   []int64 // tokens taken in the closed buckets, a ring by number
}

// NewWindow returns an empty window of so many buckets, the given one being the
// last. It is closed.
func NewWindow(buckets int, last int64) *Window {
	w := &Window{open: last, taken: make([]int64, buckets)}
	w.Close()
	return w
}

// Clone returns a window of its own that holds the same. The window must be closed,
// and so is the clone.
func (w *Window) Clone() *Window {
	c := &Window{open: w.open, opening: w.opening, taken: slices.Clone(w.taken)}
	c.state.Store(w.state.Load())
	return c
}

// Take takes n tokens in the bucket if it is open and has room for them.
func (w *Window) Take(bucket int64, n int32) Outcome {
	for {
		state := w.state.Load()
		if !isOpen(state, bucket) {
			return NotOpen
		}
		room := roomOf(state)
		if room < int64(n) {
			return Full
		}
		if w.state.CompareAndSwap(state, packState(bucket, room-int64(n))) {
			return Taken
		}
	}
}

// Check is Take, without taking anything: Taken tells that there is room.
func (w *Window) Check(bucket int64, n int32) Outcome {
	switch state := w.state.Load(); {
	case !isOpen(state, bucket):
		return NotOpen
	case roomOf(state) < int64(n):
		return Full
	}
	return Taken
}

// TryCount counts n tokens in the bucket, room or no room, if it is open. What
// exceeds the ceiling by more than a thousand million is not counted.
func (w *Window) TryCount(bucket int64, n int32) bool {
	for {
		state := w.state.Load()
		if !isOpen(state, bucket) {
			return false
		}
		room := max(math.MinInt32, roomOf(state)-int64(n))
		if w.state.CompareAndSwap(state, packState(bucket, room)) {
			return true
		}
	}
}

// TryGiveBack returns n tokens that were taken in the bucket, if it is still
// open.
func (w *Window) TryGiveBack(bucket int64, n int32) bool {
	for {
		state := w.state.Load()
		if !isOpen(state, bucket) {
			return false
		}
		if w.state.CompareAndSwap(state, packState(bucket, roomOf(state)+int64(n))) {
			return true
		}
	}
}

// GiveBack returns n tokens that were taken in a bucket, while the window is
// closed. When the window has moved past that bucket, nothing is left to
// return and GiveBack returns false.
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

// Room returns how many tokens may still be taken in the open bucket, less than
// zero when more were taken than the present ceiling allows.
func (w *Window) Room() int64 { return roomOf(w.state.Load()) }

// Taken returns how many tokens were taken in the open bucket.
func (w *Window) Taken() int64 { return w.opening - w.Room() }

// Close shuts the open bucket and returns how many tokens were taken in it. It
// has no room until Open, for that bucket again or for a later one.
func (w *Window) Close() (taken int64) {
	// The number that differs in its highest bit is half the range away from
	// any bucket that a caller could name.
	state := w.state.Swap(packState(w.open^1<<31, 0))
	w.opening -= roomOf(state)
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

// Open opens a bucket, the one that was closed or a later one, with the given
// ceiling on what the window may hold, that bucket included.
func (w *Window) Open(bucket, ceiling int64) {
	room := max(-1<<30, ceiling-w.Held(bucket)) // as many more can still be counted
	for b := max(w.open, bucket-int64(len(w.taken))) + 1; b <= bucket; b++ {
		w.taken[w.slot(b)] = 0
	}
	w.open = bucket
	w.opening = room + w.taken[w.slot(bucket)]
	w.state.Store(packState(bucket, room))
}

// FreeIn returns after how many buckets from the open one there will be room
// for n tokens, given that there is room for so many now, fewer than n, and that
// nothing else is taken. The answer holds for an n that is not more than the
// ceiling. One token of the bucket named extra makes no room when it leaves.
func (w *Window) FreeIn(n int32, room, extra int64) (buckets int64) {
	missing := int64(n) - room
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
// length. It must be closed and stays so. last is the bucket, of the new length,
// that is the present one.
func (w *Window) Resize(buckets int, last int64) {
	w.taken, w.open, w.opening = make([]int64, buckets), last, 0
	w.state.Store(packState(last^1<<31, 0))
}

// Put counts n tokens in a bucket, whatever room there is, while the window is
// closed. What would count in a later bucket than the present one counts there.
// It returns the bucket, and false when the window has moved past it.
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

func packState(bucket, room int64) uint64 { return uint64(bucket)<<32 | uint64(uint32(int32(room))) }

func isOpen(state uint64, bucket int64) bool { return uint32(state>>32) == uint32(bucket) }

func roomOf(state uint64) int64 { return int64(int32(uint32(state))) }
