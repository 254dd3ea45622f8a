package penstockprom

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// number is a counter or a gauge. It does what those of [prometheus.NewConstMetric] do, but
// takes labels that were made at an earlier scrape.
type number struct {
	desc      *prometheus.Desc
	labels    []*dto.LabelPair
	value     float64
	isCounter bool
}

// Desc implements [prometheus.Metric].
func (n *number) Desc() *prometheus.Desc { return n.desc }

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

// distribution is a summary without quantiles, or a histogram.
type distribution struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	count  uint64
	sum    float64 // seconds

	layout *histogramLayout // nil for a summary
	times  buckets
}

// Desc implements [prometheus.Metric].
func (d *distribution) Desc() *prometheus.Desc { return d.desc }

// Write implements [prometheus.Metric].
func (d *distribution) Write(out *dto.Metric) error {
	out.Label = d.labels
	if d.layout == nil || d.layout.kind == NoHistograms {
		out.Summary = &dto.Summary{SampleCount: &d.count, SampleSum: &d.sum}
		return nil
	}
	out.Histogram = &dto.Histogram{SampleCount: &d.count, SampleSum: &d.sum}
	if d.layout.kind == NativeHistograms {
		d.writeNative(out.Histogram)
	} else {
		d.writeClassic(out.Histogram)
	}
	return nil
}

func (d *distribution) writeClassic(out *dto.Histogram) {
	upTo := make([]uint64, len(d.layout.labels))
	made := make([]dto.Bucket, len(d.layout.labels))
	out.Bucket = make([]*dto.Bucket, len(d.layout.labels))
	var highest uint64
	for i := range made {
		// Counts of a bucket that is finer than those of the engine are
		// estimates. Sums of them may be out of order by one call.
		if i < len(d.times) {
			highest = max(highest, d.times[i].count)
		}
		upTo[i] = highest
		made[i].UpperBound, made[i].CumulativeCount = &d.layout.labels[i], &upTo[i]
		out.Bucket[i] = &made[i]
	}
}

func (d *distribution) writeNative(out *dto.Histogram) {
	times := d.times
	schema, zeroWidth, zeros := int32(nativeSchema), float64(nativeZeroWidth), uint64(0)
	if len(times) > 0 && times[0].index == nativeZero {
		zeros, times = times[0].count, times[1:]
	}
	out.Schema, out.ZeroThreshold, out.ZeroCount = &schema, &zeroWidth, &zeros
	out.PositiveDelta = make([]int64, 0, len(times))
	var before bucket
	for i, b := range times {
		if i == 0 || b.index != before.index+1 {
			offset, length := b.index, uint32(0) // of the first span from bucket 0
			if i > 0 {
				offset -= before.index + 1
			}
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: &length})
		}
		*out.PositiveSpan[len(out.PositiveSpan)-1].Length++
		out.PositiveDelta = append(out.PositiveDelta, int64(b.count-before.count))
		before = b
	}
}
