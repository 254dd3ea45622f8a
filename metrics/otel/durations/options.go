package durations

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// DefaultMaxResources is the default of [Options.MaxResources].
const DefaultMaxResources = 1000

// Options configure a producer. The zero value is ready to use.
type Options struct {
	// Temporality is that of the exporter: readers pass on what producers have, without a
	// change. Defaults to [metricdata.CumulativeTemporality].
	Temporality metricdata.Temporality

	// Exponential chooses an exponential histogram, of scale 3: its buckets are 9 % wide, and
	// appear as durations come. Bounds are not used.
	Exponential bool

	// Bounds are the upper bounds of the buckets, in any order. Defaults to those that the
	// conventions recommend for durations of requests, 5 ms to 10 s, extended downward to 100 µs.
	Bounds []time.Duration

	// MaxResources bounds how many resources have series of their own, as that of package
	// penstockotel does. Defaults to [DefaultMaxResources].
	MaxResources int
}

func (o Options) withDefaults() Options {
	if o.Temporality != metricdata.DeltaTemporality {
		o.Temporality = metricdata.CumulativeTemporality
	}
	if len(o.Bounds) == 0 {
		o.Bounds = defaultBounds()
	}
	o.Bounds = slices.Compact(slices.Sorted(slices.Values(o.Bounds)))
	if o.MaxResources <= 0 {
		o.MaxResources = DefaultMaxResources
	}
	return o
}

func defaultBounds() (bounds []time.Duration) {
	for _, micros := range []int{100, 250, 500, 1000, 2500} {
		bounds = append(bounds, time.Duration(micros)*time.Microsecond)
	}
	for _, millis := range []int{5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000} {
		bounds = append(bounds, time.Duration(millis)*time.Millisecond)
	}
	return bounds
}
