package stat

import "sync/atomic"

// Remembered is how many buckets of a [LeapArray] can be read back, the one
// that is being written included.
const Remembered = 60

const (
	slots    = 64 // a power of two, at least Remembered
	slotBits = 6

	valueBits = 40
	maxValue  = 1<<valueBits - 1
	lapMask   = 1<<(64-valueBits) - 1
)

// LeapArray is a ring of counters, one for each bucket of time. Buckets are
// named by their number, the time since the epoch divided by their length; the
// caller divides. The zero value is empty and ready; all methods are safe for
// concurrent use, lock-free, and allocate nothing. A counter holds up to 2^40-1
// and stays there.
//
// A slot of the ring is one word that carries, beside the count, which lap of
// the ring it counts for. Starting a slot over for a new lap and counting into
// it are therefore one compare-and-swap: no count falls between two laps, none
// is counted in both, and there is no half-cleared bucket to be seen.
type LeapArray struct {
	words   [slots]atomic.Uint64
	retired atomic.Uint64 // the sum of the buckets that were overwritten
	seen    atomic.Uint64 // the highest Total ever returned
}

// Add counts n events in the bucket. Events of a bucket that the ring has
// already left behind count in the Total only.
func (a *LeapArray) Add(bucket int64, n uint64) {
	n = min(n, maxValue)
	word := &a.words[bucket&(slots-1)]
	lap := lapOf(bucket)
	for {
		old := word.Load()
		switch value := old & maxValue; {
		case old>>valueBits == lap:
			if word.CompareAndSwap(old, pack(lap, value+n)) {
				return
			}
		case value > 0 && older(lap, old>>valueBits):
			a.retired.Add(n)
			return
		case word.CompareAndSwap(old, pack(lap, n)):
			a.retired.Add(value)
			return
		}
	}
}

// Raise makes the bucket hold at least value: a LeapArray of maxima. Such an
// array has no meaningful Total.
func (a *LeapArray) Raise(bucket int64, value uint64) {
	word := &a.words[bucket&(slots-1)]
	lap := lapOf(bucket)
	for {
		old := word.Load()
		present := old & maxValue
		switch {
		case old>>valueBits == lap:
			if present >= value {
				return
			}
		case present > 0 && older(lap, old>>valueBits):
			return
		}
		if word.CompareAndSwap(old, pack(lap, value)) {
			return
		}
	}
}

// Get returns the count of a bucket, 0 when the ring does not hold it.
func (a *LeapArray) Get(bucket int64) uint64 {
	word := a.words[bucket&(slots-1)].Load()
	if word>>valueBits != lapOf(bucket) {
		return 0
	}
	return word & maxValue
}

// Total returns the count of all events ever added. It never goes down.
func (a *LeapArray) Total() uint64 {
	// What a slot held is added to retired after the slot was started over.
	// Reading in this order misses such a sum for a moment rather than
	// counting it twice; seen hides the moment.
	total := a.retired.Load()
	for i := range a.words {
		total += a.words[i].Load() & maxValue
	}
	for {
		seen := a.seen.Load()
		if total <= seen {
			return seen
		}
		if a.seen.CompareAndSwap(seen, total) {
			return total
		}
	}
}

func lapOf(bucket int64) uint64 { return uint64(bucket>>slotBits) & lapMask }

// older says whether lap comes before other, in numbers that wrap around.
func older(lap, other uint64) bool { return (lap-other)&lapMask > lapMask/2 }

func pack(lap, value uint64) uint64 { return lap<<valueBits | min(value, maxValue) }
