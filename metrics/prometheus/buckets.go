package penstockprom

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/penstock-go/penstock/stat"
)

// histogramLayout says which buckets histograms have.
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

// histogram returns a histogram of response times, of which the sum, in seconds, is known; nil
// if there are no histograms.
func (l *histogramLayout) histogram(times stat.Distribution, sum float64) *dto.Histogram {
	if l.kind == NoHistograms {
		return nil
	}
	count := times.Count
	h := &dto.Histogram{SampleCount: &count, SampleSum: &sum}
	if l.kind == NativeHistograms {
		writeNative(h, times)
	} else {
		l.writeClassic(h, times)
	}
	return h
}

// writeClassic counts the response times that were at most a bound, for all bounds in one pass. The bucket that a
// bound parts counts in proportion.
func (l *histogramLayout) writeClassic(h *dto.Histogram, times stat.Distribution) {
	upTo := make([]uint64, len(l.bounds))
	made := make([]dto.Bucket, len(l.bounds))
	h.Bucket = make([]*dto.Bucket, len(l.bounds))
	var below uint64 // in buckets that end at the bound or before
	next := 0
	for i, bound := range l.bounds {
		for next < len(times.Buckets) && times.Buckets[next].High <= bound {
			below += times.Buckets[next].Count
			next++
		}
		upTo[i] = below
		if next < len(times.Buckets) {
			if b := times.Buckets[next]; b.Low < bound {
				upTo[i] += uint64(float64(b.Count) * float64(bound-b.Low) / float64(b.High-b.Low))
			}
		}
		made[i].UpperBound, made[i].CumulativeCount = &l.labels[i], &upTo[i]
		h.Bucket[i] = &made[i]
	}
}

const (
	nativeSchema    = 3 // 8 buckets for each doubling
	nativePerDouble = 1 << nativeSchema
	nativeZeroWidth = 0x1p-128 // what client libraries take
)

// writeNative puts each bucket of the engine, which is narrower, into the native bucket that
// its middle is in. So no count ever moves from one bucket to another.
func writeNative(h *dto.Histogram, times stat.Distribution) {
	schema, zeroWidth, zeros := int32(nativeSchema), float64(nativeZeroWidth), uint64(0)
	if len(times.Buckets) > 0 && times.Buckets[0].Low == 0 {
		zeros, times.Buckets = times.Buckets[0].Count, times.Buckets[1:]
	}
	h.Schema, h.ZeroThreshold, h.ZeroCount = &schema, &zeroWidth, &zeros
	h.PositiveDelta = make([]int64, 0, len(times.Buckets))
	var last int32   // the index of the last bucket
	var count uint64 // that it has
	for i, b := range times.Buckets {
		index := nativeIndex(b)
		if i > 0 && index == last {
			count += b.Count
			h.PositiveDelta[len(h.PositiveDelta)-1] += int64(b.Count)
			continue
		}
		if i == 0 || index != last+1 {
			offset, length := index, uint32(0) // of the first span from bucket 0
			if i > 0 {
				offset -= last + 1
			}
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: &length})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, int64(b.Count-count))
		last, count = index, b.Count
	}
}

// nativeIndex returns the index of the native bucket that the middle of a bucket is in.
func nativeIndex(b stat.DistributionBucket) int32 {
	middle := (b.Low + b.High - 1).Seconds() / 2 // High is exclusive
	return int32(math.Ceil(math.Log2(middle) * nativePerDouble))
}
