package penstockotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// DefaultMaxResources is the default of [Options.MaxResources].
const DefaultMaxResources = 500

// Options configure what is exposed. The zero value is ready to use.
type Options struct {
	// MeterProvider has the instruments. Defaults to the global one, [otel.GetMeterProvider].
	MeterProvider metric.MeterProvider

	// MaxResources bounds how many resources that no rule names have series of their own.
	// Resources that rules name always have. Defaults to [DefaultMaxResources].
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
