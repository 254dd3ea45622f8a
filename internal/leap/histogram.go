package leap

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/stat"
)

const (
	octaves      = 40 // the last ends at 1 ns << 43, about 2.4 h
	shortOctaves = 7  // of them hold what is shorter than 1024 ns
	longOctaves  = 9  // and so many what takes 17 s or longer
	perOctave    = 16
)

// Histogram keeps the distribution of response times since it was made, in
// buckets that are at most a sixteenth of their value wide, or a nanosecond.
// Quantiles are therefore right within 3.2 %, or half a nanosecond. What is longer
// than about 2.4 hours counts in the last bucket.
//
// The zero value is empty and ready. Memory is taken as values come: 128 bytes for
// each doubling of the response time that was ever seen. All methods are lock-free
// and safe for concurrent use.
type Histogram struct {
	short  atomic.Pointer[[shortOctaves]atomic.Pointer[octave]] // few resources need any of them
	middle [octaves - shortOctaves - longOctaves]atomic.Pointer[octave]
	long   atomic.Pointer[[longOctaves]atomic.Pointer[octave]] // few resources need any of these either
}

// octave counts the response times between two powers of two.
type octave [perOctave]atomic.Uint64

// Record counts one response time. Negative ones count as zero.
func (h *Histogram) Record(d time.Duration) { h.RecordN(d, 1) }

// RecordN counts n response times that are alike.
func (h *Histogram) RecordN(d time.Duration, n uint64) {
	o, i := place(d)
	counts := h.load(o)
	if counts == nil {
		counts = h.add(o)
	}
	counts[i].Add(n)
}

// load returns the counters of an octave; nil if there are none yet.
func (h *Histogram) load(o int) *octave {
	if i := o - shortOctaves; uint(i) < uint(len(h.middle)) {
		return h.middle[i].Load()
	}
	return h.loadRare(o)
}

// loadRare is load for one of the short and the long octaves.
func (h *Histogram) loadRare(o int) *octave {
	if o < shortOctaves {
		if short := h.short.Load(); short != nil {
			return short[o].Load()
		}
	} else if long := h.long.Load(); long != nil {
		return long[o-octaves+longOctaves].Load()
	}
	return nil
}

// add returns the counters of an octave, which it makes unless somebody else does.
func (h *Histogram) add(o int) *octave {
	switch i := o - shortOctaves; {
	case i < 0:
		h.short.CompareAndSwap(nil, new([shortOctaves]atomic.Pointer[octave]))
		h.short.Load()[o].CompareAndSwap(nil, new(octave))
	case i < len(h.middle):
		h.middle[i].CompareAndSwap(nil, new(octave))
	default:
		h.long.CompareAndSwap(nil, new([longOctaves]atomic.Pointer[octave]))
		h.long.Load()[i-len(h.middle)].CompareAndSwap(nil, new(octave))
	}
	return h.load(o)
}

// Snapshot returns a copy of the present counts. Response times that are recorded
// meanwhile may be missing from it.
func (h *Histogram) Snapshot() stat.Distribution {
	var d stat.Distribution
	if n := h.bucketsInUse(); n > 0 {
		d.Buckets = make([]stat.DistributionBucket, 0, n)
	}
	for o := range octaves {
		counts := h.load(o)
		if counts == nil {
			continue
		}
		for i := range counts {
			if n := counts[i].Load(); n > 0 {
				low := lowerBound(o, i)
				d.Buckets = append(d.Buckets, stat.DistributionBucket{Low: low, High: low + width(o), Count: n})
				d.Count += n
			}
		}
	}
	return d
}

// bucketsInUse returns how many buckets have counted any.
func (h *Histogram) bucketsInUse() (inUse int) {
	for o := range octaves {
		if counts := h.load(o); counts != nil {
			for i := range counts {
				if counts[i].Load() > 0 {
					inUse++
				}
			}
		}
	}
	return inUse
}

// place returns where a response time is counted: octave 0 holds 16 buckets of
// a nanosecond, each further one 16 that are twice as wide as those before.
func place(d time.Duration) (octave, i int) {
	v := uint64(max(d, 0))
	if v < perOctave {
		return 0, int(v)
	}
	octave = bits.Len64(v) - 4
	if octave >= octaves {
		return octaves - 1, perOctave - 1
	}
	return octave, int(v>>(octave-1)) - perOctave
}

func lowerBound(octave, i int) time.Duration {
	if octave == 0 {
		return time.Duration(i)
	}
	return time.Duration(perOctave+i) * width(octave)
}

func width(octave int) time.Duration { return 1 << max(octave-1, 0) }
