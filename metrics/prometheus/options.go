package penstockprom

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DefaultMaxResources is the default of [Options.MaxResources].
const DefaultMaxResources = 500

// Options configure a collector. The zero value is ready to use.
type Options struct {
	// MaxResources bounds how many resources that no rule names have series of
	// their own. Resources that rules name always have. Each resource has about 25
	// series, most of them buckets of its histogram. Defaults to
	// [DefaultMaxResources].
	MaxResources int

	// Buckets are the upper bounds of the histogram of response times, in any
	// order. The engine keeps response times in buckets of its own, at most a
	// sixteenth of their value wide; a bound inside such a bucket divides its
	// count in proportion. Defaults to [prometheus.DefBuckets], 5 ms to 10 s,
	// extended downward to 100 µs.
	Buckets []time.Duration

	// ConstLabels are added to every series. They distinguish engines in one
	// registry. Defaults to none.
	ConstLabels prometheus.Labels
}

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
