package penstockotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// DefaultMaxResources is the default of [Options.MaxResources].
const DefaultMaxResources = 1000

// Options configure what is exposed. The zero value is ready to use.
type Options struct {
	// MeterProvider has the instruments. Defaults to the global one, [otel.GetMeterProvider].
	MeterProvider metric.MeterProvider

	// MaxResources bounds how many resources have series of their own: first those that rules
	// name, then others, first those that had series before. All others together are the
	// resource "(other)". Of what [NewObserver] measures it is the resources that come first
	// which have series of their own. Defaults to [DefaultMaxResources].
	MaxResources int
}

func (o Options) withDefaults() Options {
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.MaxResources <= 0 {
		o.MaxResources = DefaultMaxResources
	}
	return o
}

// meter returns the meter of the package.
func (o Options) meter() metric.Meter {
	return o.MeterProvider.Meter("github.com/penstock-go/penstock/metrics/otel")
}
