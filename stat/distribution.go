package stat

import (
	"slices"
	"time"
)

// Distribution is a histogram as it was at one moment.
type Distribution struct {
	// Count is how many response times were recorded.
	Count uint64
	// Buckets are those that hold any, in ascending order.
	Buckets []DistributionBucket
}

// DistributionBucket counts the response times from Low, inclusive, to High,
// exclusive.
type DistributionBucket struct {
	Low, High time.Duration
	Count     uint64
}

// Add adds what a histogram has counted between two snapshots of it. It adds nothing where a count
// went down. Copies of d share its buckets, which it changes.
func (d *Distribution) Add(now, earlier Distribution) {
	if now.Count == earlier.Count {
		return
	}
	if d.Buckets == nil {
		d.Buckets = make([]DistributionBucket, 0, len(now.Buckets))
	}
	at := 0
	for _, b := range now.Buckets {
		for len(earlier.Buckets) > 0 && earlier.Buckets[0].Low < b.Low {
			earlier.Buckets = earlier.Buckets[1:]
		}
		if len(earlier.Buckets) > 0 && earlier.Buckets[0].Low == b.Low {
			b.Count -= min(b.Count, earlier.Buckets[0].Count)
		}
		if b.Count == 0 {
			continue
		}
		for at < len(d.Buckets) && d.Buckets[at].Low < b.Low {
			at++
		}
		if at == len(d.Buckets) || d.Buckets[at].Low != b.Low {
			d.Buckets = slices.Insert(d.Buckets, at, DistributionBucket{Low: b.Low, High: b.High})
		}
		d.Buckets[at].Count += b.Count
		d.Count += b.Count
	}
}

// Quantile returns the response time that the fraction q of all (0.99 for the
// 99th percentile; from 0 to 1) did not exceed, within 3.2 % or half a nanosecond;
// 0 when there are none.
func (d Distribution) Quantile(q float64) time.Duration {
	rank := q * float64(d.Count)
	var seen uint64
	for _, b := range d.Buckets {
		if seen += b.Count; float64(seen) >= rank {
			return (b.Low + b.High) / 2 // at most half a bucket from the truth
		}
	}
	return 0
}

// Since returns what was recorded after an earlier snapshot of the same
// histogram was taken.
func (d Distribution) Since(earlier Distribution) Distribution {
	before := make(map[time.Duration]uint64, len(earlier.Buckets))
	for _, b := range earlier.Buckets {
		before[b.Low] = b.Count
	}
	var since Distribution
	for _, b := range d.Buckets {
		if b.Count -= before[b.Low]; b.Count > 0 {
			since.Buckets = append(since.Buckets, b)
			since.Count += b.Count
		}
	}
	return since
}
