package durations

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/penstock-go/penstock/stat"
)

const (
	scale     = 3
	perDouble = 1 << scale // buckets of an exponential histogram for each doubling
)

// explicit returns the series as a histogram with upper bounds in seconds.
func (s *series) explicit(at time.Time, bounds []float64) metricdata.HistogramDataPoint[float64] {
	counts := make([]uint64, len(bounds)+1)
	for _, b := range s.times.Buckets {
		i, _ := slices.BinarySearch(bounds, middle(b)) // a bound is in the bucket below it
		counts[i] += b.Count
	}
	return metricdata.HistogramDataPoint[float64]{
		Attributes: s.attributes, StartTime: s.start, Time: at,
		Count: s.times.Count, Sum: s.sum.Seconds(), Bounds: bounds, BucketCounts: counts,
	}
}

// exponential returns the series as an exponential histogram.
func (s *series) exponential(at time.Time) metricdata.ExponentialHistogramDataPoint[float64] {
	point := metricdata.ExponentialHistogramDataPoint[float64]{
		Attributes: s.attributes, StartTime: s.start, Time: at,
		Count: s.times.Count, Sum: s.sum.Seconds(), Scale: scale,
	}
	positive := &point.PositiveBucket
	for _, b := range s.times.Buckets { // in ascending order
		if b.Low == 0 {
			point.ZeroCount = b.Count
			continue
		}
		index := int32(math.Ceil(math.Log2(middle(b))*perDouble)) - 1
		if len(positive.Counts) == 0 {
			positive.Offset = index
		}
		for int(index-positive.Offset) >= len(positive.Counts) {
			positive.Counts = append(positive.Counts, 0)
		}
		positive.Counts[index-positive.Offset] += b.Count
	}
	return point
}

// middle returns the middle of a bucket in seconds. Its High is exclusive.
func middle(b stat.DistributionBucket) float64 { return (b.Low + b.High - 1).Seconds() / 2 }
