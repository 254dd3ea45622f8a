package penstockprom

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DefaultMaxResources is the default of [Options.MaxResources].
const DefaultMaxResources = 1000

// Options configure a collector. The zero value is ready to use.
type Options struct {
	// MaxResources bounds how many resources have series of their own: first those that
	// rules name, then others, first those that had series before. All others together are
	// the resource "(other)". Each has 9 metrics, of which the response time is a histogram,
	// and one to four for each rule on it. Defaults to [DefaultMaxResources].
	MaxResources int

	// Histograms says how response times are exposed. Defaults to [ClassicHistograms].
	Histograms Histograms

	// Buckets are the upper bounds of classic histograms of response times, in any
	// order. The engine keeps response times in buckets of its own, at most a
	// sixteenth of their value wide; a bound inside such a bucket divides its
	// count in proportion. Defaults to [prometheus.DefBuckets], 5 ms to 10 s,
	// extended downward to 100 µs.
	Buckets []time.Duration

	// ConstLabels are added to every series. They distinguish engines in one
	// registry. Defaults to none.
	ConstLabels prometheus.Labels
}

// Histograms says how the distribution of response times is exposed.
type Histograms int

const (
	// ClassicHistograms have a series for each of [Options.Buckets], and three more.
	ClassicHistograms Histograms = iota

	// NativeHistograms are one series each, whose buckets are at most 9 % wide and
	// appear as response times come. A response time that is next to the edge of a bucket
	// may be counted in the neighbor. Prometheus has to scrape native histograms (before
	// version 3.8 with --enable-feature=native-histograms), which it does in the protobuf
	// format; in text formats the histogram has no buckets.
	NativeHistograms

	// NoHistograms leaves the distribution out. What remains is a summary: the number of
	// calls that ended and the sum of their response times.
	NoHistograms
)

func (o Options) withDefaults() Options {
	if o.MaxResources <= 0 {
		o.MaxResources = DefaultMaxResources
	}
	if len(o.Buckets) == 0 {
		o.Buckets = defaultBuckets()
	}
	o.Buckets = slices.Compact(slices.Sorted(slices.Values(o.Buckets)))
	return o
}

func defaultBuckets() []time.Duration {
	return []time.Duration{
		100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
		1 * time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
		10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		1 * time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
	}
}
