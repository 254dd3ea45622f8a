package main

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/penstock-go/penstock/metrics/otel/durations"
)

// telemetry keeps in memory what the services show, and sends it to a collector if there is one.
type telemetry struct {
	spans     *tracetest.SpanRecorder
	traces    *sdktrace.TracerProvider
	reader    *sdkmetric.ManualReader
	meters    *sdkmetric.MeterProvider
	durations []*durations.Producer // one for each reader
}

// newTelemetry makes the providers. The temporality is that of metrics for the collector, whose
// URL may be empty.
func newTelemetry(ctx context.Context, collector string, temporality sdkmetric.TemporalitySelector) (telemetry, error) {
	inMemory := durations.NewProducer(durations.Options{})
	t := telemetry{
		spans: tracetest.NewSpanRecorder(), durations: []*durations.Producer{inMemory},
		reader: sdkmetric.NewManualReader(sdkmetric.WithProducer(inMemory)),
	}
	traces := []sdktrace.TracerProviderOption{sdktrace.WithSpanProcessor(t.spans)}
	meters := []sdkmetric.Option{
		sdkmetric.WithReader(t.reader),
		sdkmetric.WithCardinalityLimit(20_000), // of each instrument: by default 2,000, too few for 1,000 resources
	}
	if collector != "" {
		spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(collector+"/v1/traces"))
		if err != nil {
			return t, err
		}
		traces = append(traces, sdktrace.WithBatcher(spans))
		metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(collector+"/v1/metrics"),
			otlpmetrichttp.WithTemporalitySelector(temporality))
		if err != nil {
			return t, err
		}
		sent := durations.NewProducer(durations.Options{
			Temporality: temporality(sdkmetric.InstrumentKindHistogram), Exponential: true,
		})
		t.durations = append(t.durations, sent)
		meters = append(meters, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithProducer(sent))))
	}
	t.traces, t.meters = sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(meters...)
	return t, nil
}

// shutdown sends what was not sent yet.
func (t telemetry) shutdown(ctx context.Context) error {
	return errors.Join(t.traces.Shutdown(ctx), t.meters.Shutdown(ctx))
}
