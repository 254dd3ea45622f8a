package penstockprom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// number is a counter or a gauge. It does what those of [prometheus.NewConstMetric] do, but
// takes labels that were made at an earlier scrape.
type number struct {
	of        *family
	labels    []*dto.LabelPair
	value     float64
	isCounter bool
}

// Desc implements [prometheus.Metric].
func (n *number) Desc() *prometheus.Desc { return n.of.desc }

// Write implements [prometheus.Metric].
func (n *number) Write(out *dto.Metric) error {
	out.Label = n.labels
	if n.isCounter {
		out.Counter = &dto.Counter{Value: &n.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &n.value}
	}
	return nil
}

// distribution is a histogram, or a summary without quantiles.
type distribution struct {
	of        *family
	labels    []*dto.LabelPair
	histogram *dto.Histogram // nil of a summary
	count     uint64         // of a summary, as is sum
	sum       float64        // seconds
}

// Desc implements [prometheus.Metric].
func (d *distribution) Desc() *prometheus.Desc { return d.of.desc }

// Write implements [prometheus.Metric].
func (d *distribution) Write(out *dto.Metric) error {
	out.Label, out.Histogram = d.labels, d.histogram
	if d.histogram == nil {
		out.Summary = &dto.Summary{SampleCount: &d.count, SampleSum: &d.sum}
	}
	return nil
}

// histogram returns a histogram of response times, of which count and sum, in seconds, are
// known; nil if there are no histograms.
func (l *histogramLayout) histogram(times buckets, count uint64, sum float64) *dto.Histogram {
	h := &dto.Histogram{SampleCount: &count, SampleSum: &sum}
	switch l.kind {
	case NoHistograms:
		return nil
	case NativeHistograms:
		writeNative(h, times)
	case ClassicHistograms:
		l.writeClassic(h, times)
	}
	return h
}

func (l *histogramLayout) writeClassic(h *dto.Histogram, times buckets) {
	upTo := make([]uint64, len(l.labels))
	made := make([]dto.Bucket, len(l.labels))
	h.Bucket = make([]*dto.Bucket, len(l.labels))
	var highest uint64
	for i := range made {
		// Counts of a bucket that is finer than those of the engine are
		// estimates. Sums of them may be out of order by one call.
		if i < len(times) {
			highest = max(highest, times[i].count)
		}
		upTo[i] = highest
		made[i].UpperBound, made[i].CumulativeCount = &l.labels[i], &upTo[i]
		h.Bucket[i] = &made[i]
	}
}

func writeNative(h *dto.Histogram, times buckets) {
	schema, zeroWidth, zeros := int32(nativeSchema), float64(nativeZeroWidth), uint64(0)
	if len(times) > 0 && times[0].index == nativeZero {
		zeros, times = times[0].count, times[1:]
	}
	h.Schema, h.ZeroThreshold, h.ZeroCount = &schema, &zeroWidth, &zeros
	h.PositiveDelta = make([]int64, 0, len(times))
	var before bucket
	for i, b := range times {
		if i == 0 || b.index != before.index+1 {
			offset, length := b.index, uint32(0) // of the first span from bucket 0
			if i > 0 {
				offset -= before.index + 1
			}
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: &length})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, int64(b.count-before.count))
		before = b
	}
}
