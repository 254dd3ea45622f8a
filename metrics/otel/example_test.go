package penstockotel_test

import (
	"context"
	"fmt"
	"log/slog"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockotel "github.com/penstock-go/penstock/metrics/otel"
	"github.com/penstock-go/penstock/rules"
)

// An engine whose refusals are events on spans, and whose counts are metrics.
func Example() {
	reader := sdkmetric.NewManualReader() // a service has one that exports
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("shop")
	options := penstockotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}

	observer, err := penstockotel.NewObserver(core.Observer{}, options)
	if err != nil {
		panic(err)
	}
	engine := core.New(core.Config{Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "orders-limit", Resource: "orders", Limit: 1, Window: 3600e9}}}); err != nil {
		panic(err)
	}
	if _, err := penstockotel.Register(engine, options); err != nil {
		panic(err)
	}

	for range 2 {
		ctx, span := tracer.Start(context.Background(), "create order")
		if guard, err := engine.Entry(ctx, "orders"); err == nil {
			guard.Exit()
		}
		span.End()
	}

	for _, event := range spans.Ended()[1].Events() {
		fmt.Println(event.Name, event.Attributes[1].Value.AsString(), event.Attributes[2].Value.AsString())
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		panic(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if m.Name == "penstock.requests" {
			points := m.Data.(metricdata.Sum[int64]).DataPoints
			for _, p := range points {
				result, _ := p.Attributes.Value(penstockotel.ResultKey)
				fmt.Println(m.Name, result.AsString(), p.Value)
			}
		}
	}
	// Unordered output:
	// penstock.refused flow orders-limit
	// penstock.requests acquired 1
	// penstock.requests refused 1
}
