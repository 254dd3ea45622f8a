package penstockprom

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/stat"
)

// bucket is a count of response times. Of classic histograms, index is that of the bound,
// and count is how many are up to it. Of native histograms, index is that of the bucket,
// and count is how many are in it; buckets without any are left out.
type bucket struct {
	index int32
	count uint64
}

// buckets are in the order of their indices. No count goes down while the engine keeps the
// resource.
type buckets []bucket

// histogramLayout says which buckets there are.
type histogramLayout struct {
	kind   Histograms
	bounds []time.Duration // of classic histograms
	labels []float64       // the bounds in seconds
}

func newHistogramLayout(options Options) histogramLayout {
	l := histogramLayout{kind: options.Histograms, bounds: options.Buckets}
	for _, bound := range l.bounds {
		l.labels = append(l.labels, bound.Seconds())
	}
	return l
}

// read appends the buckets of a distribution to into.
func (l *histogramLayout) read(into buckets, d stat.Distribution) buckets {
	switch l.kind {
	case NoHistograms:
		return into
	case NativeHistograms:
		return readNative(into, d)
	}
	return l.readClassic(into, d)
}

// readClassic does what [stat.Distribution.CountUpTo] does, for all bounds in one pass.
func (l *histogramLayout) readClassic(into buckets, d stat.Distribution) buckets {
	var below uint64 // in buckets that end at the bound or before
	next := 0
	for i, bound := range l.bounds {
		for next < len(d.Buckets) && d.Buckets[next].High <= bound {
			below += d.Buckets[next].Count
			next++
		}
		upTo := below
		if next < len(d.Buckets) {
			if b := d.Buckets[next]; b.Low < bound {
				upTo += uint64(float64(b.Count) * float64(bound-b.Low) / float64(b.High-b.Low))
			}
		}
		into = append(into, bucket{int32(i), upTo})
	}
	return into
}

const (
	nativeSchema    = 3 // 8 buckets for each doubling
	nativePerDouble = 1 << nativeSchema
	nativeZero      = math.MinInt32 // the index of the bucket of response times of 0
	nativeZeroWidth = 0x1p-128      // what client libraries take
)

// readNative puts each bucket of the engine, which is narrower, into the native bucket that
// its middle is in. So no count ever moves from one bucket to another.
func readNative(into buckets, d stat.Distribution) buckets {
	for _, b := range d.Buckets {
		index := int32(nativeZero)
		if b.Low > 0 {
			middle := (b.Low + b.High - 1).Seconds() / 2 // High is exclusive
			index = int32(math.Ceil(math.Log2(middle) * nativePerDouble))
		}
		if last := len(into) - 1; last >= 0 && into[last].index == index {
			into[last].count += b.Count
		} else {
			into = append(into, bucket{index, b.Count})
		}
	}
	return into
}

// add adds the increase from earlier to now.
func (b *buckets) add(now, earlier buckets) {
	at := 0
	for _, n := range now {
		for len(earlier) > 0 && earlier[0].index < n.index {
			earlier = earlier[1:]
		}
		if len(earlier) > 0 && earlier[0].index == n.index {
			n.count -= earlier[0].count
		}
		for at < len(*b) && (*b)[at].index < n.index {
			at++
		}
		if at == len(*b) || (*b)[at].index != n.index {
			*b = slices.Insert(*b, at, bucket{index: n.index})
		}
		(*b)[at].count += n.count
	}
}

// fellBelow says whether a count of now is less than it was earlier.
func (b buckets) fellBelow(earlier buckets) bool {
	for _, e := range earlier {
		for len(b) > 0 && b[0].index < e.index {
			b = b[1:]
		}
		if len(b) == 0 || b[0].index != e.index || b[0].count < e.count {
			return true
		}
	}
	return false
}
