package breaker

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// window counts the calls that have ended in the present bucket and the nine before, or the
// last so many calls.
//
// Recent outcomes are added to one atomic word without a lock, by compare-and-swap: of the
// present bucket how many there are, of the last calls which. The holder of the breaker's
// mutex can freeze that word: its outcomes move to the ring or the table, swaps fail, and
// everything else may change. Resuming gives the word a new stamp. So a swap succeeds only if
// nothing has changed since the word was read.
type window struct {
	recent atomic.Uint64 // the stamp, and outcomes that are not in the ring or the table yet

	// These change only while recent is frozen.
	start      atomic.Int64  // of the present bucket
	calls, bad atomic.Uint64 // all that is in the ring or the table
	leaving    atomic.Uint64 // of the last calls: those that the next ones push out

	// touched is an instant at which a call has ended, at most a minute before the latest. It is
	// kept for the last calls only, of which none goes as time passes.
	touched atomic.Int64

	// The breaker's mutex guards the rest.
	last    lastCalls
	bucket  time.Duration  // the length of one; 0 for the last calls
	present int64          // the number of the present bucket since the epoch
	ring    [buckets]tally // bucket n is at n modulo buckets
	stamp   uint64         // of recent
}

// tally is a number of calls and how many of them were bad.
type tally struct{ calls, bad uint64 }

// A word of recent outcomes has, from the top, the mark that it is frozen, 23 bits of
// its stamp, 20 of calls and 20 of bad calls.
const (
	countBits = 20
	mostCalls = 1<<countBits - 1

	oneBad  uint64 = 1
	oneCall uint64 = 1 << countBits
	frozen  uint64 = 1 << 63

	stampShift = 2 * countBits
	stampMask  = frozen>>stampShift - 1
)

func unpack(recent uint64) tally {
	return tally{calls: recent >> countBits & mostCalls, bad: recent & mostCalls}
}

// freeze moves the recent outcomes to the ring and makes swaps fail. It does nothing if
// the window is frozen.
func (w *window) freeze() {
	recent := w.recent.Swap(frozen)
	if recent&frozen != 0 {
		return
	}
	if w.bucket == 0 {
		w.flushBatch(recent)
		return
	}
	w.add(w.present, unpack(recent))
}

// resume allows swaps again.
func (w *window) resume() {
	if w.bucket == 0 {
		w.leaving.Store(w.last.leaving(batchBits))
	}
	w.stamp = (w.stamp + 1) & stampMask
	w.recent.Store(w.stamp << stampShift)
}

// clear empties the window and sets what counts: a time in buckets of a length or, if that is 0, the
// last so many calls. It must be frozen.
func (w *window) clear(now clock.Instant, bucket time.Duration, last int) {
	w.ring = [buckets]tally{}
	w.last = newLastCalls(last)
	w.calls.Store(0)
	w.bad.Store(0)
	w.bucket = bucket
	if bucket > 0 {
		w.begin(w.number(now))
	}
}

// count adds an outcome to a frozen window. It returns false, and adds nothing, if the
// outcome is too old for the window.
func (w *window) count(now clock.Instant, o outcome) bool {
	if w.bucket == 0 {
		w.touch(now)
		w.push(o == bad)
		return true
	}
	n := w.number(now)
	if n > w.present {
		w.advance(n)
	}
	if n <= w.present-buckets {
		return false
	}
	one := tally{calls: 1}
	if o == bad {
		one.bad = 1
	}
	w.add(n, one)
	return true
}

// touch notes that a call has ended.
func (w *window) touch(now clock.Instant) {
	if int64(now)-w.touched.Load() > int64(time.Minute) {
		w.touched.Store(int64(now))
	}
}

// addToBucket returns the word with one outcome more, good or bad, and what the window then holds. It returns
// false if the outcome is of another bucket than the present one, of that length, or the word is full.
func (w *window) addToBucket(recent uint64, bucket time.Duration, now clock.Instant, o outcome) (next uint64, total tally, ok bool) {
	next = recent + oneCall + uint64(o)*oneBad
	total = unpack(next)
	if uint64(int64(now)-w.start.Load()) < uint64(bucket) && total.calls < mostCalls {
		total, ok = tally{w.calls.Load() + total.calls, w.bad.Load() + total.bad}, true
	}
	return
}

// isForgotten says whether the outcomes, which do not go as time passes, are so old that nobody
// misses them.
func (w *window) isForgotten(now clock.Instant) bool {
	return w.bucket == 0 && now >= clock.Instant(w.touched.Load()).Add(forgetAfter+time.Minute)
}

// advance makes a later bucket the present one.
func (w *window) advance(n int64) {
	for passed := max(w.present+1, n-buckets+1); passed <= n; passed++ {
		slot := w.tally(passed)
		w.calls.Add(-slot.calls)
		w.bad.Add(-slot.bad)
		*slot = tally{}
	}
	w.begin(n)
}

func (w *window) begin(n int64) {
	w.present = n
	w.start.Store(n * int64(w.bucket))
}

func (w *window) add(n int64, t tally) {
	slot := w.tally(n)
	slot.calls += t.calls
	slot.bad += t.bad
	w.calls.Add(t.calls)
	w.bad.Add(t.bad)
}

// at returns what the window holds at an instant, and changes nothing.
func (w *window) at(now clock.Instant) tally {
	if w.bucket == 0 {
		recent := w.recent.Load()
		if recent&frozen != 0 {
			recent = 0
		}
		return w.withBatch(recent, w.last.size)
	}
	var total tally
	latest := max(w.number(now), w.present)
	for n := latest - buckets + 1; n <= w.present; n++ {
		total.calls += w.tally(n).calls
		total.bad += w.tally(n).bad
	}
	if recent := w.recent.Load(); recent&frozen == 0 && latest < w.present+buckets {
		total.calls += unpack(recent).calls
		total.bad += unpack(recent).bad
	}
	return total
}

// tally returns the counts of bucket n. A window that begins at the epoch has buckets
// with negative numbers.
func (w *window) tally(n int64) *tally { return &w.ring[(n%buckets+buckets)%buckets] }

func (w *window) number(now clock.Instant) int64 { return int64(now) / int64(w.bucket) }
